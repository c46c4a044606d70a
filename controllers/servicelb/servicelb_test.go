package servicelb_test

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/periplus/periplus/controllers"
	"github.com/periplus/periplus/controllers/controllerstest"
	"github.com/periplus/periplus/controllers/servicelb"
)

func node(name, ip string, ready corev1.ConditionStatus) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: corev1.NodeStatus{
		Addresses:  []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: ip}},
		Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: ready}},
	}}
}

func service(name string, port int32, age time.Duration, policy corev1.ServiceExternalTrafficPolicy) *corev1.Service {
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default", UID: types.UID(name), CreationTimestamp: metav1.NewTime(time.Now().Add(-age))},
		Spec: corev1.ServiceSpec{
			Type: corev1.ServiceTypeLoadBalancer, ExternalTrafficPolicy: policy,
			Ports: []corev1.ServicePort{{Port: port, Protocol: corev1.ProtocolTCP}},
		},
	}
}

func TestAddresses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		other, yes, on := "example.com/lb", true, "b"
		foreign := service("foreign", 80, time.Hour, "")
		foreign.Spec.LoadBalancerClass = &other
		w := controllerstest.Start(t, []controllers.Controller{servicelb.Controller()}, func(e *controllers.Env) { e.Options.ReservedPorts = []int32{6443} },
			node("a", "192.0.2.1", corev1.ConditionTrue), node("b", "192.0.2.2", corev1.ConditionTrue), node("c", "192.0.2.3", corev1.ConditionFalse),
			foreign, service("first", 80, time.Hour, ""), service("second", 80, time.Minute, ""), service("near", 81, time.Hour, "Local"), service("api", 6443, time.Hour, ""),
			&discoveryv1.EndpointSlice{
				ObjectMeta: metav1.ObjectMeta{Name: "near-1", Namespace: "default", Labels: map[string]string{discoveryv1.LabelServiceName: "near"}},
				Endpoints:  []discoveryv1.Endpoint{{Addresses: []string{"10.42.1.2"}, NodeName: &on, Conditions: discoveryv1.EndpointConditions{Ready: &yes}}},
			})
		check := func(when string, want map[string][]string) {
			t.Helper()
			synctest.Wait()
			for name, ips := range want {
				s, err := w.Client.CoreV1().Services("default").Get(t.Context(), name, metav1.GetOptions{})
				if err != nil {
					t.Fatal(err)
				}
				var got []string
				for _, i := range s.Status.LoadBalancer.Ingress {
					got = append(got, i.IP)
				}
				if !slices.Equal(got, ips) {
					t.Errorf("%s: %s has %v, want %v", when, name, got, ips)
				}
			}
		}
		check("at first", map[string][]string{"first": {"192.0.2.1", "192.0.2.2"}, "second": nil, "near": {"192.0.2.2"}, "foreign": nil, "api": nil})

		if _, err := w.Client.CoreV1().Nodes().Update(t.Context(), node("c", "192.0.2.3", corev1.ConditionTrue), metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		check("c is ready", map[string][]string{"first": {"192.0.2.1", "192.0.2.2", "192.0.2.3"}, "near": {"192.0.2.2"}})

		if err := w.Client.CoreV1().Services("default").Delete(t.Context(), "first", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		check("the port is free", map[string][]string{"second": {"192.0.2.1", "192.0.2.2", "192.0.2.3"}})

		s, err := w.Client.CoreV1().Services("default").Get(t.Context(), "second", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		s.Spec.Type = corev1.ServiceTypeClusterIP
		if _, err := w.Client.CoreV1().Services("default").Update(t.Context(), s, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		check("no load balancer any more", map[string][]string{"second": nil})
	})
}
