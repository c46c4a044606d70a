package meshtest

import (
	"context"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/periplus/periplus/mesh"
	"github.com/periplus/periplus/mesh/sidecar"
)

// A Pod is an application, with its sidecar if it is in the mesh.
type Pod struct {
	Name, Namespace string
	IP              netip.Addr
	Sidecar         *sidecar.Sidecar // nil: not in the mesh

	mesh *Mesh
	apps map[uint16]string // where the application really listens, by its port
	stop context.CancelFunc
	done chan struct{}
}

// PodPort is that on which applications listen.
const PodPort = 8080

func (p *Pod) dialApp(ctx context.Context, to netip.AddrPort) (net.Conn, error) {
	real, ok := p.apps[to.Port()]
	if !ok {
		return nil, fmt.Errorf("dial tcp %s: connection refused", to)
	}
	var d net.Dialer
	return d.DialContext(ctx, "tcp", real)
}

// Pod makes one of the mesh, whose service account has the namespace's name, and
// waits until its sidecar is ready. A nil handler makes a client.
func (m *Mesh) Pod(namespace, name string, labels map[string]string, h http.Handler) *Pod {
	return m.pod(namespace, name, labels, h, true)
}

// Stranger makes a pod that is not in the mesh.
func (m *Mesh) Stranger(namespace, name string, labels map[string]string, h http.Handler) *Pod {
	return m.pod(namespace, name, labels, h, false)
}

func (m *Mesh) pod(namespace, name string, labels map[string]string, h http.Handler, meshed bool) *Pod {
	t := m.t
	t.Helper()
	m.pods++
	p := &Pod{Name: name, Namespace: namespace, IP: netip.AddrFrom4([4]byte{10, 42, 0, byte(m.pods)}), mesh: m, apps: map[uint16]string{}}
	own := map[string]string{}
	maps.Copy(own, labels)
	if meshed {
		own[mesh.LabelTLS] = mesh.TLSModeIstio
	}
	if h != nil {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		protocols := &http.Protocols{}
		protocols.SetHTTP1(true)
		protocols.SetUnencryptedHTTP2(true)
		s := &http.Server{Handler: h, Protocols: protocols}
		go func() { _ = s.Serve(l) }()
		t.Cleanup(func() { _ = s.Close() })
		p.apps[PodPort] = l.Addr().String()
	}
	_, err := m.Client.CoreV1().Pods(namespace).Create(t.Context(), &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace, Labels: own},
		Spec:       corev1.PodSpec{ServiceAccountName: namespace, Containers: []corev1.Container{{Name: "app", Ports: []corev1.ContainerPort{{Name: "web", ContainerPort: PodPort}}}}},
		Status:     corev1.PodStatus{PodIP: p.IP.String()},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	m.learned(namespace, name)
	if meshed {
		m.startSidecar(p, own)
	}
	m.fabric.mu.Lock()
	m.fabric.pods[p.IP] = p
	m.fabric.mu.Unlock()
	return p
}

func (m *Mesh) startSidecar(p *Pod, labels map[string]string) {
	t := m.t
	t.Helper()
	token := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(token, []byte(p.Namespace+"/"+p.Namespace+"/"+p.Name), 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := sidecar.New(sidecar.Config{
		Pod: p.Name, Namespace: p.Namespace, Address: p.IP.String(), ServiceAccount: p.Namespace, Workload: labels["app"], Labels: labels,
		ControlPlane: m.Address, RootFile: m.rootFile, TokenFile: token, Ports: &sidecar.Ports{},
		Network: &network{m.fabric, p}, Log: m.log,
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	p.Sidecar, p.stop, p.done = s, cancel, make(chan struct{})
	go func() {
		defer close(p.done)
		if err := s.Run(ctx); err != nil {
			t.Errorf("sidecar of %s: %v", p.Name, err)
		}
	}()
	t.Cleanup(func() {
		cancel()
		<-p.done
	})
	if err := s.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// Client is an HTTP client inside of the pod: what it sends is redirected to the
// sidecar, if there is one.
func (p *Pod) Client() *http.Client {
	transport := &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, address string) (net.Conn, error) {
		to, err := p.mesh.resolve(address)
		if err != nil {
			return nil, err
		}
		if p.Sidecar == nil {
			return p.mesh.fabric.dial(ctx, p.mesh.endpoint(to))
		}
		return p.mesh.fabric.redirect(ctx, p.Sidecar.Engine().Addr("virtualOutbound"), to)
	}}
	return &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

// Dial connects from inside of the pod.
func (p *Pod) Dial(t testing.TB, address string) (net.Conn, error) {
	t.Helper()
	return p.Client().Transport.(*http.Transport).DialContext(t.Context(), "tcp", address)
}

// URL is a service's.
func URL(service, path string) string {
	return (&url.URL{Scheme: "http", Host: service, Path: path}).String()
}
