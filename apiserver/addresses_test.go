package apiserver_test

import (
	"context"
	"fmt"
	"net/netip"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/periplus/periplus/apiserver"
	"github.com/periplus/periplus/store/mem"
)

func service(name, ip string) *corev1.Service {
	return &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.ServiceSpec{ClusterIP: ip, Ports: []corev1.ServicePort{{Port: 80}}}}
}

func makeService(ctx context.Context, t *testing.T, c kubernetes.Interface, name, ip string) *corev1.Service {
	t.Helper()
	s, err := c.CoreV1().Services("default").Create(ctx, service(name, ip), metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// A cluster IP is an IPAddress object as long as its Service has it.
func TestClusterIPsAreObjects(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	_, c := start(t)
	s := makeService(ctx, t, c, "a", "")
	ip, err := c.NetworkingV1().IPAddresses().Get(ctx, s.Spec.ClusterIP, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if ref := ip.Spec.ParentRef; ref == nil || *ref != (networkingv1.ParentReference{Resource: "services", Namespace: "default", Name: "a"}) {
		t.Errorf("the address belongs to %+v", ref)
	}
	if ip.Labels[networkingv1.LabelIPAddressFamily] != "IPv4" || ip.Labels[networkingv1.LabelManagedBy] != "ipallocator.k8s.io" {
		t.Errorf("labels %v", ip.Labels)
	}
	dry, err := c.CoreV1().Services("default").Create(ctx, service("dry", ""), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.NetworkingV1().IPAddresses().Get(ctx, dry.Spec.ClusterIP, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("a dry run has claimed an address: %v", err)
	}
	if err := c.CoreV1().Services("default").Delete(ctx, "a", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := c.NetworkingV1().IPAddresses().Get(ctx, s.Spec.ClusterIP, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("the address of a deleted service: %v", err)
	}
	// One that a person has claimed is nobody's else.
	taken := &networkingv1.IPAddress{ObjectMeta: metav1.ObjectMeta{Name: "10.43.200.1"}, Spec: networkingv1.IPAddressSpec{
		ParentRef: &networkingv1.ParentReference{Group: "gateway.networking.k8s.io", Resource: "gateways", Namespace: "default", Name: "g"}}}
	if _, err := c.NetworkingV1().IPAddresses().Create(ctx, taken, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	_, err = c.CoreV1().Services("default").Create(ctx, service("b", "10.43.200.1"), metav1.CreateOptions{})
	if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "failed to allocate IP 10.43.200.1: provided IP is already allocated") {
		t.Errorf("an address that a gateway has: %v", err)
	}
	if _, err := c.CoreV1().Services("default").Create(ctx, service("kubernetes", "10.43.200.2"), metav1.CreateOptions{}); !apierrors.IsAlreadyExists(err) {
		t.Fatalf("a service with a name that is taken: %v", err)
	}
	if _, err := c.NetworkingV1().IPAddresses().Get(ctx, "10.43.200.2", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("the address of a service that was not made: %v", err)
	}
}

// A further ServiceCIDR gives room when the first is full.
func TestServiceCIDRs(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	_, c := startWith(t, func(config *apiserver.Config) {
		config.ServiceCIDRs = []netip.Prefix{netip.MustParsePrefix("10.99.0.0/30")}
	})
	makeService(ctx, t, c, "a", "")
	_, err := c.CoreV1().Services("default").Create(ctx, service("b", ""), metav1.CreateOptions{})
	if err == nil || !strings.Contains(err.Error(), "range is full") {
		t.Fatalf("a third address in a range of two: %v", err)
	}
	if _, err := c.NetworkingV1().ServiceCIDRs().Create(ctx, &networkingv1.ServiceCIDR{
		ObjectMeta: metav1.ObjectMeta{Name: "more"}, Spec: networkingv1.ServiceCIDRSpec{CIDRs: []string{"10.98.0.0/24"}},
	}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if s := makeService(ctx, t, c, "b", ""); !strings.HasPrefix(s.Spec.ClusterIP, "10.98.0.") {
		t.Errorf("the address %s is of no range", s.Spec.ClusterIP)
	}
	makeService(ctx, t, c, "d", "10.98.0.77")
}

// Of servers that share a store none gives an address that another has given.
func TestServersShareAddresses(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	shared := mem.New()
	clients := servers(t, 2, shared, func(config *apiserver.Config) {
		config.ServiceCIDRs = []netip.Prefix{netip.MustParsePrefix("10.99.0.0/26")}
	})
	var wait sync.WaitGroup
	for i, c := range clients {
		for j := range 25 {
			wait.Go(func() {
				if _, err := c.CoreV1().Services("default").Create(ctx, service(fmt.Sprintf("s-%d-%d", i, j), ""), metav1.CreateOptions{}); err != nil {
					t.Error(err)
				}
			})
		}
	}
	wait.Wait()
	list, err := clients[0].CoreV1().Services("").List(ctx, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	owner := map[string]string{}
	for i := range list.Items {
		s := &list.Items[i]
		if other := owner[s.Spec.ClusterIP]; other != "" {
			t.Errorf("%s and %s both have %s", other, s.Name, s.Spec.ClusterIP)
		}
		owner[s.Spec.ClusterIP] = s.Name
	}
	if len(owner) != 51 {
		t.Errorf("%d addresses of 51 services", len(owner))
	}
}
