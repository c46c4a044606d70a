package apiserver

import (
	"context"
	"net/netip"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes"

	"github.com/periplus/periplus/apiserver/authz/rbac"
)

// bootstrap makes the objects that every cluster has, those that are missing.
// Writes run side by side, so that the store can commit them together.
func (s *Server) bootstrap(ctx context.Context, c kubernetes.Interface) error {
	first, firstCtx := errgroup.WithContext(ctx)
	for _, name := range []string{metav1.NamespaceDefault, metav1.NamespaceSystem, metav1.NamespacePublic, corev1.NamespaceNodeLease} {
		first.Go(func() error {
			return ensure(firstCtx, c.CoreV1().Namespaces(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
		})
	}
	first.Go(func() error { return rbac.BootstrapCluster(firstCtx, c) })
	for _, class := range priorityClasses() {
		first.Go(func() error { return ensure(firstCtx, c.SchedulingV1().PriorityClasses(), class) })
	}
	var cidrs []string
	for _, p := range s.config.ServiceCIDRs {
		cidrs = append(cidrs, p.String())
	}
	first.Go(func() error {
		return ensure(firstCtx, c.NetworkingV1().ServiceCIDRs(), &networkingv1.ServiceCIDR{
			ObjectMeta: metav1.ObjectMeta{Name: "kubernetes"}, Spec: networkingv1.ServiceCIDRSpec{CIDRs: cidrs}})
	})
	if err := first.Wait(); err != nil {
		return err
	}
	second, ctx := errgroup.WithContext(ctx)
	second.Go(func() error { return rbac.BootstrapNamespaces(ctx, c) })
	second.Go(func() error { return s.config.Trust.Publish(ctx, c) })
	second.Go(func() error { return trackTokens(ctx, c) })
	second.Go(func() error {
		if err := s.rest.Reclaim(ctx, corev1.SchemeGroupVersion.WithResource("services")); err != nil {
			return err
		}
		return s.publish(ctx, c)
	})
	return second.Wait()
}

// creator is the part of a typed client that ensure needs.
type creator[T any] interface {
	Get(ctx context.Context, name string, o metav1.GetOptions) (T, error)
	Create(ctx context.Context, obj T, o metav1.CreateOptions) (T, error)
}

// ensure creates obj unless it exists.
func ensure[T metav1.Object](ctx context.Context, c creator[T], obj T) error {
	_, err := c.Get(ctx, obj.GetName(), metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		_, err = c.Create(ctx, obj, metav1.CreateOptions{})
		if apierrors.IsAlreadyExists(err) {
			err = nil
		}
	}
	return err
}

func priorityClasses() []*schedulingv1.PriorityClass {
	class := func(name string, value int32, what string) *schedulingv1.PriorityClass {
		return &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Value: value, Description: what}
	}
	return []*schedulingv1.PriorityClass{
		class("system-node-critical", 2000001000, "Used for system critical pods that must not be moved from their current node."),
		class("system-cluster-critical", 2000000000, "Used for system critical pods that must run in the cluster, but can be moved to another node if necessary."),
	}
}

// publish makes the Service default/kubernetes and points it at this server.
func (s *Server) publish(ctx context.Context, c kubernetes.Interface) error {
	const name, ns = "kubernetes", metav1.NamespaceDefault
	ip := s.config.ServiceCIDRs[0].Masked().Addr().Next()
	single := corev1.IPFamilyPolicySingleStack
	service := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: ns, Labels: map[string]string{"component": "apiserver", "provider": "kubernetes"}},
		Spec: corev1.ServiceSpec{
			Type: corev1.ServiceTypeClusterIP, ClusterIP: ip.String(), ClusterIPs: []string{ip.String()}, IPFamilyPolicy: &single,
			SessionAffinity: corev1.ServiceAffinityNone,
			Ports:           []corev1.ServicePort{{Name: "https", Port: 443, Protocol: corev1.ProtocolTCP, TargetPort: intstr.FromInt32(int32(s.config.Advertise.Port()))}},
		},
	}
	if err := ensure(ctx, c.CoreV1().Services(ns), service); err != nil {
		return err
	}
	if !s.config.Advertise.IsValid() || s.config.Shared {
		return nil // see keepEndpoint
	}
	if err := apply(ctx, c.CoreV1().Endpoints(ns), endpoints(name, ns, s.config.Advertise), sameEndpoints); err != nil { //nolint:staticcheck // still served, and read by old clients
		return err
	}
	return apply(ctx, c.DiscoveryV1().EndpointSlices(ns), endpointSlice(name, ns, s.config.Advertise), sameSlice)
}

func endpoints(name, ns string, all ...netip.AddrPort) *corev1.Endpoints { //nolint:staticcheck // see publish
	var addresses []corev1.EndpointAddress
	for _, a := range all {
		addresses = append(addresses, corev1.EndpointAddress{IP: a.Addr().String()})
	}
	return &corev1.Endpoints{ //nolint:staticcheck // see publish
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: ns, Labels: map[string]string{discoveryv1.LabelSkipMirror: "true"}},
		Subsets: []corev1.EndpointSubset{{ //nolint:staticcheck // see publish
			Addresses: addresses,
			Ports:     []corev1.EndpointPort{{Name: "https", Port: int32(all[0].Port()), Protocol: corev1.ProtocolTCP}},
		}},
	}
}

func endpointSlice(name, ns string, all ...netip.AddrPort) *discoveryv1.EndpointSlice {
	family := discoveryv1.AddressTypeIPv4
	if all[0].Addr().Is6() {
		family = discoveryv1.AddressTypeIPv6
	}
	port, protocol, portName, ready := int32(all[0].Port()), corev1.ProtocolTCP, "https", true
	var endpoints []discoveryv1.Endpoint
	for _, a := range all {
		endpoints = append(endpoints, discoveryv1.Endpoint{Addresses: []string{a.Addr().String()}, Conditions: discoveryv1.EndpointConditions{Ready: &ready}})
	}
	return &discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Name: name, Namespace: ns, Labels: map[string]string{discoveryv1.LabelServiceName: name}},
		AddressType: family,
		Endpoints:   endpoints,
		Ports:       []discoveryv1.EndpointPort{{Name: &portName, Port: &port, Protocol: &protocol}},
	}
}

type updater[T any] interface {
	creator[T]
	Update(ctx context.Context, obj T, o metav1.UpdateOptions) (T, error)
}

// apply creates or updates obj so that same holds.
func apply[T metav1.Object](ctx context.Context, c updater[T], obj T, same func(a, b T) bool) error {
	current, err := c.Get(ctx, obj.GetName(), metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		_, err = c.Create(ctx, obj, metav1.CreateOptions{})
	case err == nil && !same(current, obj):
		obj.SetResourceVersion(current.GetResourceVersion())
		_, err = c.Update(ctx, obj, metav1.UpdateOptions{})
	}
	return err
}

func sameEndpoints(a, b *corev1.Endpoints) bool { //nolint:staticcheck // see publish
	return equality.Semantic.DeepEqual(a.Subsets, b.Subsets)
}

func sameSlice(a, b *discoveryv1.EndpointSlice) bool {
	return a.AddressType == b.AddressType && equality.Semantic.DeepEqual(a.Endpoints, b.Endpoints) && *a.Ports[0].Port == *b.Ports[0].Port
}
