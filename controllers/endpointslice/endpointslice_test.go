package endpointslice_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/periplus/periplus/controllers"
	"github.com/periplus/periplus/controllers/controllerstest"
	"github.com/periplus/periplus/controllers/endpointslice"
	"github.com/periplus/periplus/journey"
)

type spans struct {
	mu   sync.Mutex
	list []journey.Span
}

func (s *spans) Record(span journey.Span) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.list = append(s.list, span)
}

func pod(name, ip string, ready bool) *corev1.Pod {
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default", Labels: map[string]string{"app": "web"}},
		Spec:       corev1.PodSpec{NodeName: "n1", Containers: []corev1.Container{{Name: "c", Ports: []corev1.ContainerPort{{Name: "http", ContainerPort: 8080, Protocol: corev1.ProtocolTCP}}}}},
	}
	if ready {
		controllerstest.Ready(p)
	}
	p.Status.PodIP, p.Status.PodIPs = ip, []corev1.PodIP{{IP: ip}}
	return p
}

// TestReadyPods publishes pods as they become ready, and takes them out as they go.
func TestReadyPods(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	var log spans
	c := controllerstest.Start(t, []controllers.Controller{endpointslice.Controller()}, func(e *controllers.Env) { e.Journey = &log },
		&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}})
	service := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "default"},
		Spec: corev1.ServiceSpec{
			Selector: map[string]string{"app": "web"}, IPFamilies: []corev1.IPFamily{corev1.IPv4Protocol}, ClusterIP: "10.43.0.10",
			Ports: []corev1.ServicePort{{Name: "http", Port: 80, TargetPort: intstr.FromString("http"), Protocol: corev1.ProtocolTCP}},
		},
	}
	if _, err := c.Client.CoreV1().Services("default").Create(ctx, service, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	ready := func() []string {
		slices, err := c.Client.DiscoveryV1().EndpointSlices("default").List(ctx, metav1.ListOptions{LabelSelector: discoveryv1.LabelServiceName + "=web"})
		if err != nil {
			t.Fatal(err)
		}
		var out []string
		for _, s := range slices.Items {
			for _, e := range s.Endpoints {
				if *e.Conditions.Ready {
					out = append(out, fmt.Sprintf("%s:%d", e.Addresses[0], *s.Ports[0].Port))
				}
			}
		}
		return out
	}
	create := func(p *corev1.Pod) {
		if _, err := c.Client.CoreV1().Pods("default").Create(ctx, p, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	create(pod("a", "10.42.0.2", true))
	create(pod("b", "10.42.0.3", false))
	c.Until("the ready pod is published", func() bool { return slices.Equal(ready(), []string{"10.42.0.2:8080"}) })
	c.SetPod("default", "b", controllerstest.Ready)
	c.Until("both are", func() bool { return len(ready()) == 2 })
	if err := c.Client.CoreV1().Pods("default").Delete(ctx, "a", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	c.Until("one is left", func() bool { return slices.Equal(ready(), []string{"10.42.0.3:8080"}) })

	c.Until("the journeys tell of both", func() bool {
		log.mu.Lock()
		defer log.mu.Unlock()
		n := 0
		for _, s := range log.list {
			if s.Kind == "Pod" && s.Step == "endpoint slice of service web updated" {
				n++
			}
		}
		return n == 2
	})
}
