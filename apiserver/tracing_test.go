package apiserver_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"sync"
	"testing"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/grpc"

	"github.com/periplus/periplus/apiserver"
	"github.com/periplus/periplus/store/mem"
)

// spansOf is a collector of OpenTelemetry that keeps what it gets.
type spansOf struct {
	collector.UnimplementedTraceServiceServer
	mu      sync.Mutex // guards what follows
	service string
	spans   []*tracepb.Span
}

// Export implements collector.TraceServiceServer.
func (c *spansOf) Export(_ context.Context, r *collector.ExportTraceServiceRequest) (*collector.ExportTraceServiceResponse, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, resource := range r.ResourceSpans {
		for _, a := range resource.Resource.Attributes {
			if a.Key == "service.name" {
				c.service = a.Value.GetStringValue()
			}
		}
		for _, of := range resource.ScopeSpans {
			c.spans = append(c.spans, of.Spans...)
		}
	}
	return &collector.ExportTraceServiceResponse{}, nil
}

// named returns a span by its name.
func (c *spansOf) named(t *testing.T, name string) *tracepb.Span {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range c.spans {
		if s.Name == name {
			return s
		}
	}
	t.Fatalf("there is no span %q", name)
	return nil
}

func TestTracing(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // of a test
	if err != nil {
		t.Fatal(err)
	}
	got := &spansOf{}
	server := grpc.NewServer()
	collector.RegisterTraceServiceServer(server, got)
	served := make(chan error, 1)
	go func() { served <- server.Serve(l) }()
	t.Cleanup(func() {
		server.Stop()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	file := filepath.Join(t.TempDir(), "tracing.yaml")
	text := fmt.Sprintf("apiVersion: apiserver.config.k8s.io/v1\nkind: TracingConfiguration\nendpoint: %s\nsamplingRatePerMillion: 0\n", l.Addr())
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	const trace, parent = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
	t.Run("requests", func(t *testing.T) {
		s, _ := startWith(t, func(c *apiserver.Config) { c.Tracing = file })
		body := []byte(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"}}`)
		w := send(t, s, http.MethodPost, "/api/v1/namespaces/default/configmaps", "application/json", body, "Traceparent", "00-"+trace+"-"+parent+"-01")
		if w.Code != http.StatusCreated {
			t.Fatalf("%d %s", w.Code, w.Body)
		}
		send(t, s, http.MethodGet, "/api/v1/namespaces/default/configmaps/a", "", nil) // not sampled
	}) // its end sends the spans
	request := got.named(t, "POST /api/v1/namespaces/{:namespace}/configmaps")
	create := got.named(t, "Create")
	stored := got.named(t, "Create etcd3")
	if fmt.Sprintf("%x", request.TraceId) != trace || fmt.Sprintf("%x", request.ParentSpanId) != parent || request.Kind != tracepb.Span_SPAN_KIND_SERVER {
		t.Errorf("%v", request)
	}
	if string(create.ParentSpanId) != string(request.SpanId) || string(stored.ParentSpanId) != string(create.SpanId) {
		t.Errorf("%x is below %x, %x below %x", create.SpanId, create.ParentSpanId, stored.SpanId, stored.ParentSpanId)
	}
	attributes := map[string]string{}
	for _, a := range request.Attributes {
		attributes[a.Key] = fmt.Sprint(a.Value.GetStringValue(), a.Value.GetIntValue())
	}
	if attributes["http.response.status_code"] != "201" || attributes["audit-id"] == "0" || got.service != "apiserver" {
		t.Errorf("%v of %s", attributes, got.service)
	}
	got.mu.Lock()
	defer got.mu.Unlock()
	if len(got.spans) > 4 {
		t.Errorf("%d spans", len(got.spans))
	}
}

// TestTracingConfiguration: what is wrong in the file is said at the start.
func TestTracingConfiguration(t *testing.T) {
	t.Parallel()
	for _, bad := range []string{"kind: Nonsense", "apiVersion: apiserver.config.k8s.io/v1\nkind: TracingConfiguration\nsamplingRatePerMillion: -1\n"} {
		file := filepath.Join(t.TempDir(), "tracing.yaml")
		if err := os.WriteFile(file, []byte(bad), 0o600); err != nil {
			t.Fatal(err)
		}
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := apiserver.New(apiserver.Config{
			Store: mem.New(), Version: "v1.37.2", ServiceAccountKey: key, ServiceCIDRs: []netip.Prefix{netip.MustParsePrefix("10.43.0.0/16")}, Tracing: file,
		}); err == nil {
			t.Errorf("%q is taken", bad)
		}
	}
}
