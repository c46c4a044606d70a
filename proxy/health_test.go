package proxy_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/periplus/periplus/linux/porttest"
	"github.com/periplus/periplus/proxy"
)

// TestHealthCheckNodePort asks as a load balancer does.
func TestHealthCheckNodePort(t *testing.T) {
	t.Parallel()
	port := porttest.Free(t)
	svc := service(func(s *v1.Service) {
		s.Spec.Type, s.Spec.ExternalTrafficPolicy, s.Spec.HealthCheckNodePort = v1.ServiceTypeLoadBalancer, v1.ServiceExternalTrafficPolicyLocal, int32(port)
	})
	client := fake.NewClientset(svc, slice("a", ready("10.42.0.2", "n1"), ready("10.42.1.2", "n2")))
	factory := informers.NewSharedInformerFactory(client, 0)
	b := newBackend()
	p, err := proxy.New(proxy.Config{Informers: factory, Node: "n1", Backends: []proxy.Backend{b}, Log: slog.New(slog.NewTextHandler(io.Discard, nil))})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	factory.Start(ctx.Done())
	ended := make(chan error)
	go func() { ended <- p.Run(ctx) }()
	ask := func() (int, string) {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("http://127.0.0.1:%d/", port), nil)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		body, err := io.ReadAll(answer.Body)
		if err != nil {
			t.Fatal(err)
		}
		return answer.StatusCode, string(body)
	}
	<-p.Synced()
	if code, body := ask(); code != http.StatusOK || !strings.Contains(body, `"localEndpoints":1`) || !strings.Contains(body, `"name":"web"`) {
		t.Errorf("with an endpoint: %d %s", code, body)
	}
	<-b.calls
	if _, err := client.DiscoveryV1().EndpointSlices("default").Update(ctx, slice("a", ready("10.42.1.2", "n2")), metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	<-b.calls // told before, answered after
	for code, body := ask(); code != http.StatusServiceUnavailable; code, body = ask() {
		if ctx.Err() != nil {
			t.Fatalf("without an endpoint: %d %s", code, body)
		}
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
