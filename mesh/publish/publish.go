package publish

import (
	"context"
	"fmt"
	"net/netip"
	"sync"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/periplus/periplus/mesh"
)

const (
	managedBy = "mesh.periplus.io"
	portName  = "https-dns"
)

// ControlPlane makes the Service istiod, without a selector, and this server's own
// slice of its endpoints.
func ControlPlane(ctx context.Context, c kubernetes.Interface, node string, address netip.Addr) error {
	service := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: mesh.ControlPlane, Namespace: mesh.RootNamespace, Labels: map[string]string{"app": mesh.ControlPlane}},
		Spec:       corev1.ServiceSpec{Ports: []corev1.ServicePort{{Name: portName, Port: mesh.DiscoveryPort, Protocol: corev1.ProtocolTCP}}},
	}
	if _, err := c.CoreV1().Services(mesh.RootNamespace).Create(ctx, service, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("service of the mesh's control plane: %w", err)
	}
	name, proto, port, ready := portName, corev1.ProtocolTCP, int32(mesh.DiscoveryPort), true
	family := discoveryv1.AddressTypeIPv4
	if address.Is6() {
		family = discoveryv1.AddressTypeIPv6
	}
	slice := &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{
			Name: mesh.ControlPlane + "-" + node, Namespace: mesh.RootNamespace,
			Labels: map[string]string{discoveryv1.LabelServiceName: mesh.ControlPlane, discoveryv1.LabelManagedBy: managedBy},
		},
		AddressType: family,
		Ports:       []discoveryv1.EndpointPort{{Name: &name, Protocol: &proto, Port: &port}},
		Endpoints:   []discoveryv1.Endpoint{{Addresses: []string{address.String()}, Conditions: discoveryv1.EndpointConditions{Ready: &ready}, NodeName: &node}},
	}
	slices := c.DiscoveryV1().EndpointSlices(mesh.RootNamespace)
	_, err := slices.Create(ctx, slice, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		var old *discoveryv1.EndpointSlice
		if old, err = slices.Get(ctx, slice.Name, metav1.GetOptions{}); err == nil && !equality.Semantic.DeepEqual(old.Endpoints, slice.Endpoints) {
			slice.ResourceVersion = old.ResourceVersion
			_, err = slices.Update(ctx, slice, metav1.UpdateOptions{})
		}
	}
	if err != nil {
		return fmt.Errorf("endpoints of the mesh's control plane: %w", err)
	}
	return nil
}

// Roots makes the ConfigMap with the authority's certificate.
type Roots struct {
	client kubernetes.Interface
	pem    string

	mu   sync.Mutex // guards done
	done map[string]bool
}

// NewRoots returns a publisher of a certificate.
func NewRoots(c kubernetes.Interface, pem []byte) *Roots {
	return &Roots{client: c, pem: string(pem), done: map[string]bool{}}
}

// Ensure makes it in a namespace; after the first time it costs nothing.
func (r *Roots) Ensure(ctx context.Context, namespace string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.done[namespace] {
		return nil
	}
	want := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: mesh.RootConfigMap, Namespace: namespace, Labels: map[string]string{"istio.io/config": "true"}},
		Data:       map[string]string{mesh.RootKey: r.pem},
	}
	maps := r.client.CoreV1().ConfigMaps(namespace)
	_, err := maps.Create(ctx, want, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		var old *corev1.ConfigMap
		if old, err = maps.Get(ctx, want.Name, metav1.GetOptions{}); err == nil && old.Data[mesh.RootKey] != r.pem {
			want.ResourceVersion = old.ResourceVersion
			_, err = maps.Update(ctx, want, metav1.UpdateOptions{})
		}
	}
	if err != nil {
		return fmt.Errorf("certificate of the mesh's authority: %w", err)
	}
	r.done[namespace] = true
	return nil
}

// Forget makes Ensure look again: the namespace is gone.
func (r *Roots) Forget(namespace string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.done, namespace)
}

// Webhooks makes the configurations, or puts them right.
func Webhooks(ctx context.Context, c kubernetes.Interface, m *admissionregistrationv1.MutatingWebhookConfiguration, v *admissionregistrationv1.ValidatingWebhookConfiguration) error {
	mutating := c.AdmissionregistrationV1().MutatingWebhookConfigurations()
	_, err := mutating.Create(ctx, m, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		var old *admissionregistrationv1.MutatingWebhookConfiguration
		if old, err = mutating.Get(ctx, m.Name, metav1.GetOptions{}); err == nil && !equality.Semantic.DeepEqual(old.Webhooks, m.Webhooks) {
			m.ResourceVersion = old.ResourceVersion
			_, err = mutating.Update(ctx, m, metav1.UpdateOptions{})
		}
	}
	if err != nil {
		return fmt.Errorf("webhook of the mesh: %w", err)
	}
	validating := c.AdmissionregistrationV1().ValidatingWebhookConfigurations()
	_, err = validating.Create(ctx, v, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		var old *admissionregistrationv1.ValidatingWebhookConfiguration
		if old, err = validating.Get(ctx, v.Name, metav1.GetOptions{}); err == nil && !equality.Semantic.DeepEqual(old.Webhooks, v.Webhooks) {
			v.ResourceVersion = old.ResourceVersion
			_, err = validating.Update(ctx, v, metav1.UpdateOptions{})
		}
	}
	if err != nil {
		return fmt.Errorf("webhook of the mesh: %w", err)
	}
	return nil
}
