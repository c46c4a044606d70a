package meshtest

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/dynamic"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/cache"

	"github.com/periplus/periplus/journey"
	"github.com/periplus/periplus/mesh"
	"github.com/periplus/periplus/mesh/ca"
	"github.com/periplus/periplus/mesh/crd"
	"github.com/periplus/periplus/mesh/pilot"
)

// A Journey keeps steps, as far as it has room.
type Journey chan journey.Span

// Record implements journey.Recorder.
func (j Journey) Record(s journey.Span) {
	select {
	case j <- s:
	default:
	}
}

// A Mesh is a control plane over a fake cluster.
type Mesh struct {
	Client    kubernetes.Interface
	Dynamic   dynamic.Interface
	Authority *ca.Authority
	Pilot     *pilot.Pilot
	// Address of the control plane, with TLS; Plain is another without, which lets
	// everybody in, for gRPC clients.
	Address, Plain string
	// Journey has the steps that the control plane records.
	Journey Journey

	t        testing.TB
	log      *slog.Logger
	fabric   *fabric
	rootFile string
	pods     int
	services map[string]*corev1.Service // by name.namespace
	stop     context.CancelFunc
	servers  []*grpc.Server
	known    []cache.SharedIndexInformer // the pods that control planes know
	running  sync.WaitGroup
}

// tokens take a token for what is in it: namespace/account/pod.
type tokens struct{}

// Authenticate implements mesh.Authenticator.
func (tokens) Authenticate(ctx context.Context) (mesh.Caller, error) {
	md, _ := metadata.FromIncomingContext(ctx)
	for _, v := range md.Get("authorization") {
		if p := strings.Split(strings.TrimPrefix(v, "Bearer "), "/"); len(p) == 3 {
			return mesh.Caller{Identity: mesh.Identity{TrustDomain: mesh.TrustDomain, Namespace: p[0], ServiceAccount: p[1]}, Pod: p[2]}, nil
		}
	}
	return mesh.Caller{}, mesh.ErrUnauthenticated
}

// New starts a control plane; it ends with the test.
func New(t testing.TB) *Mesh {
	t.Helper()
	m := &Mesh{
		t: t, fabric: newFabric(), services: map[string]*corev1.Service{},
		log: slog.New(slog.NewTextHandler(testWriter{t}, &slog.HandlerOptions{Level: slog.LevelWarn})),
	}
	m.Client, m.Journey = fake.NewClientset(), make(Journey, 1000)
	kinds := map[schema.GroupVersionResource]string{
		crd.VirtualServices: "VirtualServiceList", crd.DestinationRules: "DestinationRuleList",
		crd.PeerAuthentications: "PeerAuthenticationList", crd.AuthorizationPolicies: "AuthorizationPolicyList",
	}
	m.Dynamic = dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), kinds)
	var err error
	if m.Authority, err = ca.New(); err != nil {
		t.Fatal(err)
	}
	m.rootFile = filepath.Join(t.TempDir(), "root-cert.pem")
	if err := os.WriteFile(m.rootFile, m.Authority.Root(), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	m.stop = cancel
	m.Pilot = m.follow(ctx, tokens{})
	secure := credentials.NewTLS(&tls.Config{MinVersion: tls.VersionTLS12, NextProtos: []string{"h2"}, GetCertificate: m.Authority.ServerCertificate})
	m.Address = m.serve(m.Pilot, grpc.Creds(secure))
	plain := m.follow(ctx, nil)
	m.Plain = m.serve(plain)
	t.Cleanup(m.Stop)
	select {
	case <-m.Pilot.Ready():
	case <-t.Context().Done():
		t.Fatal("the control plane did not become ready")
	}
	return m
}

type testWriter struct{ t testing.TB }

func (w testWriter) Write(b []byte) (int, error) {
	if w.t.Context().Err() == nil {
		w.t.Log(strings.TrimSpace(string(b)))
	}
	return len(b), nil
}

// follow starts a control plane over the cluster; nil callers let everybody in.
func (m *Mesh) follow(ctx context.Context, callers mesh.Authenticator) *pilot.Pilot {
	shared := informers.NewSharedInformerFactory(m.Client, 0)
	m.known = append(m.known, shared.Core().V1().Pods().Informer())
	p := pilot.New(pilot.Config{Informers: shared, Dynamic: m.Dynamic, Domain: "cluster.local", Callers: callers, Journey: m.Journey, Log: m.log})
	m.running.Go(func() {
		if err := p.Run(ctx); err != nil {
			m.t.Errorf("pilot: %v", err)
		}
	})
	return p
}

// learned returns when the control planes know a pod.
func (m *Mesh) learned(namespace, name string) {
	m.t.Helper()
	for _, informer := range m.known {
		seen := make(chan struct{})
		once := sync.OnceFunc(func() { close(seen) })
		r, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: func(obj any) {
			if p, ok := obj.(*corev1.Pod); ok && p.Namespace == namespace && p.Name == name {
				once()
			}
		}})
		if err != nil {
			m.t.Fatal(err)
		}
		select {
		case <-seen:
		case <-m.t.Context().Done():
			m.t.Fatalf("pod %s/%s is not known to the control plane", namespace, name)
		}
		_ = informer.RemoveEventHandler(r) // fails only on a stopped informer
	}
}

func (m *Mesh) serve(p *pilot.Pilot, o ...grpc.ServerOption) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		m.t.Fatal(err)
	}
	s := grpc.NewServer(o...)
	p.Register(s)
	ca.NewService(m.Authority, tokens{}, m.log).Register(s)
	m.servers = append(m.servers, s)
	go func() { _ = s.Serve(l) }()
	return l.Addr().String()
}

// Stop ends the control plane; sidecars go on.
func (m *Mesh) Stop() {
	for _, s := range m.servers {
		s.Stop()
	}
	m.stop()
	m.running.Wait()
}

// Service makes a Service of the pods with some labels that exist now.
func (m *Mesh) Service(namespace, name string, selector map[string]string, portName string, port int32) {
	t := m.t
	t.Helper()
	s := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace},
		Spec: corev1.ServiceSpec{
			Selector: selector, ClusterIP: fmt.Sprintf("10.43.0.%d", len(m.services)+1),
			Ports: []corev1.ServicePort{{Name: portName, Port: port, TargetPort: intstr.FromString("web")}},
		},
	}
	s.Spec.ClusterIPs = []string{s.Spec.ClusterIP}
	if _, err := m.Client.CoreV1().Services(namespace).Create(t.Context(), s, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	m.services[name+"."+namespace] = s
	m.Endpoints(namespace, name)
}

// Endpoints makes a Service's slice of the pods that have its labels now.
func (m *Mesh) Endpoints(namespace, name string) {
	t := m.t
	t.Helper()
	s := m.services[name+"."+namespace]
	pods, err := m.Client.CoreV1().Pods(namespace).List(t.Context(), metav1.ListOptions{LabelSelector: labelsOf(s.Spec.Selector)})
	if err != nil {
		t.Fatal(err)
	}
	number, proto, ready := int32(PodPort), corev1.ProtocolTCP, true
	slice := &discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Name: name, Namespace: namespace, Labels: map[string]string{discoveryv1.LabelServiceName: name}},
		AddressType: discoveryv1.AddressTypeIPv4,
		Ports:       []discoveryv1.EndpointPort{{Name: &s.Spec.Ports[0].Name, Port: &number, Protocol: &proto}},
	}
	for _, p := range pods.Items {
		slice.Endpoints = append(slice.Endpoints, discoveryv1.Endpoint{
			Addresses: []string{p.Status.PodIP}, Conditions: discoveryv1.EndpointConditions{Ready: &ready},
			TargetRef: &corev1.ObjectReference{Kind: "Pod", Name: p.Name, Namespace: namespace},
		})
	}
	slices := m.Client.DiscoveryV1().EndpointSlices(namespace)
	if _, err := slices.Create(t.Context(), slice, metav1.CreateOptions{}); err != nil {
		if _, err := slices.Update(t.Context(), slice, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
}

func labelsOf(m map[string]string) string {
	var out []string
	for k, v := range m {
		out = append(out, k+"="+v)
	}
	return strings.Join(out, ",")
}

// resolve is DNS: name.namespace:port, with or without what follows, or an address.
func (m *Mesh) resolve(address string) (netip.AddrPort, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return netip.AddrPort{}, err
	}
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		return netip.AddrPort{}, err
	}
	if a, err := netip.ParseAddr(host); err == nil {
		return netip.AddrPortFrom(a, uint16(n)), nil
	}
	parts := strings.SplitN(host, ".", 3)
	if len(parts) >= 2 {
		if s := m.services[parts[0]+"."+parts[1]]; s != nil {
			return netip.AddrPortFrom(netip.MustParseAddr(s.Spec.ClusterIP), uint16(n)), nil
		}
	}
	return netip.AddrPort{}, fmt.Errorf("lookup %s: no such host", host)
}

// endpoint is the service proxy: the first pod behind a cluster IP.
func (m *Mesh) endpoint(to netip.AddrPort) netip.AddrPort {
	for _, s := range m.services {
		if s.Spec.ClusterIP != to.Addr().String() {
			continue
		}
		slice, err := m.Client.DiscoveryV1().EndpointSlices(s.Namespace).Get(context.Background(), s.Name, metav1.GetOptions{})
		if err == nil && len(slice.Endpoints) > 0 {
			return netip.AddrPortFrom(netip.MustParseAddr(slice.Endpoints[0].Addresses[0]), PodPort)
		}
	}
	return to
}

var resources = map[string]schema.GroupVersionResource{
	"VirtualService": crd.VirtualServices, "DestinationRule": crd.DestinationRules,
	"PeerAuthentication": crd.PeerAuthentications, "AuthorizationPolicy": crd.AuthorizationPolicies,
}

// Apply makes, or replaces, one of Istio's objects: its kind, namespace, name and spec.
func (m *Mesh) Apply(kind, namespace, name, spec string) {
	t := m.t
	t.Helper()
	var fields map[string]any
	if err := json.Unmarshal([]byte(spec), &fields); err != nil {
		t.Fatalf("%s %s: %v", kind, name, err)
	}
	gvr := resources[kind]
	u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": gvr.GroupVersion().String(), "kind": kind, "spec": fields}}
	u.SetName(name)
	u.SetNamespace(namespace)
	r := m.Dynamic.Resource(gvr).Namespace(namespace)
	if _, err := r.Create(t.Context(), u, metav1.CreateOptions{}); err != nil {
		if _, err := r.Update(t.Context(), u, metav1.UpdateOptions{}); err != nil {
			t.Fatalf("%s %s: %v", kind, name, err)
		}
	}
}

// Delete removes one of Istio's objects.
func (m *Mesh) Delete(kind, namespace, name string) {
	m.t.Helper()
	if err := m.Dynamic.Resource(resources[kind]).Namespace(namespace).Delete(m.t.Context(), name, metav1.DeleteOptions{}); err != nil {
		m.t.Fatal(err)
	}
}
