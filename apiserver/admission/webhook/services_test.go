package webhook_test

import (
	"fmt"
	"net"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/periplus/periplus/apiserver/admission/webhook"
)

// objects is a reader of a few objects.
type objects map[string][]runtime.Object

func (o objects) List(gvr schema.GroupVersionResource, _ string) ([]runtime.Object, error) {
	return o[gvr.Resource], nil
}

func (o objects) Get(gvr schema.GroupVersionResource, _, name string) (runtime.Object, error) {
	for _, obj := range o[gvr.Resource] {
		if obj.(metav1.Object).GetName() == name {
			return obj, nil
		}
	}
	return nil, apierrors.NewNotFound(gvr.GroupResource(), name)
}

func ptr[T any](v T) *T { return &v }

// TestServices: a ready endpoint of the right port is dialled.
func TestServices(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	port := int32(l.Addr().(*net.TCPAddr).Port)
	slice := func(name, portName string, ready bool, port int32) *discoveryv1.EndpointSlice {
		return &discoveryv1.EndpointSlice{
			ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{discoveryv1.LabelServiceName: "hook"}}, AddressType: discoveryv1.AddressTypeIPv4,
			Endpoints: []discoveryv1.Endpoint{{Addresses: []string{"127.0.0.1"}, Conditions: discoveryv1.EndpointConditions{Ready: &ready}}},
			Ports:     []discoveryv1.EndpointPort{{Name: ptr(portName), Port: &port}},
		}
	}
	service := func(name string) *corev1.Service {
		return &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Name: "https", Port: 443}, {Name: "metrics", Port: 9090}}}}
	}
	s := webhook.Services{Objects: objects{
		"services": {service("hook"), service("idle"), &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "outside"}, Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName, ExternalName: "127.0.0.1"}}},
		// Only one of them is both ready and of the port that is asked for.
		"endpointslices": {slice("a", "https", false, 1), slice("b", "metrics", true, 2), slice("c", "https", true, port)},
	}}
	for _, test := range []struct {
		name string
		port int32
		want string
	}{
		{"hook", 443, ""},
		{"outside", port, ""},
		{"hook", 80, `no service port 80 found for service "hook"`},
		{"idle", 443, `no endpoints available for service "idle"`},
		{"none", 443, `service "none" not found`},
		{"hook", 9090, "connection refused"},
	} {
		t.Run(fmt.Sprint(test.name, test.port), func(t *testing.T) {
			c, err := s.Dial(t.Context(), "tcp", "ns", test.name, test.port)
			if err == nil {
				_ = c.Close()
			}
			if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
				t.Errorf("%v, want %q", err, test.want)
			}
		})
	}
}
