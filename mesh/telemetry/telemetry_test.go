package telemetry_test

import (
	"bytes"
	"encoding/json"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/periplus/periplus/l7"
	"github.com/periplus/periplus/mesh"
	"github.com/periplus/periplus/mesh/telemetry"
)

func exchange(status int) *l7.Exchange {
	return &l7.Exchange{
		Connection: &l7.Connection{Destination: netip.MustParseAddrPort("10.43.0.1:80"), Remote: netip.MustParseAddrPort("10.42.0.2:5000")},
		Request:    l7.Request{Method: "GET", Path: "/a", Proto: "HTTP/1.1", Authority: "web"}, Response: l7.Response{Status: status},
		Cluster:     &l7.Cluster{Metadata: map[string]string{telemetry.ClusterHost: "web.shop.svc.cluster.local", telemetry.ClusterName: "web", telemetry.ClusterNamespace: "shop"}},
		ClusterName: "outbound|80||web.shop.svc.cluster.local", Endpoint: &l7.Endpoint{Address: "10.42.0.3:8080", Metadata: map[string]string{
			telemetry.EndpointWorkload: mesh.WorkloadOf("web", "shop", map[string]string{"app": "web", "version": "v1"}).Short(),
		}},
		Duration: 7 * time.Millisecond, BytesSent: 1000,
	}
}

func TestMetrics(t *testing.T) {
	t.Parallel()
	o := &telemetry.Observer{Metrics: telemetry.New(), Self: mesh.WorkloadOf("client", "front", nil), Principal: "spiffe://cluster.local/ns/front/sa/default"}
	var early []int
	o.Early = func(_ *l7.Exchange, l *telemetry.Labels, inbound bool) {
		if inbound || l.Service != "web.shop.svc.cluster.local" {
			t.Errorf("early of %+v", l)
		}
		early = append(early, l.Code)
	}
	for range 3 {
		o.Request(exchange(200))
	}
	o.Request(exchange(503))
	for range 5 {
		o.Request(exchange(404))
	}
	if want := []int{200, 200, 200, 503, 404, 404, 404, 404}; !slices.Equal(early, want) {
		t.Errorf("first requests of series: %v, want %v", early, want)
	}
	var b strings.Builder
	if err := o.Metrics.Write(&b); err != nil {
		t.Fatal(err)
	}
	lines := 0
	for line := range strings.Lines(b.String()) {
		switch {
		case strings.HasPrefix(line, "istio_requests_total{") && strings.Contains(line, `response_code="200"`):
			lines++
			for _, want := range []string{`reporter="source"`, `source_workload="client"`, `destination_version="v1"`, `destination_service_name="web"`, "} 3\n"} {
				if !strings.Contains(line, want) {
					t.Errorf("no %s in %s", want, line)
				}
			}
		case strings.HasPrefix(line, "istio_request_duration_milliseconds_bucket{") && strings.Contains(line, `response_code="200"`):
			if strings.Contains(line, `le="5"`) && !strings.HasSuffix(line, " 0\n") || strings.Contains(line, `le="10"`) && !strings.HasSuffix(line, " 3\n") {
				t.Errorf("seven milliseconds: %s", line)
			}
		}
	}
	if lines != 1 {
		t.Errorf("%d series of 200:\n%s", lines, b.String())
	}
}

func TestPeer(t *testing.T) {
	t.Parallel()
	want := mesh.WorkloadOf("web", "shop", map[string]string{"app": "web", "version": "v1"})
	var p telemetry.Peers
	for range 2 {
		if got := p.Decode(telemetry.Encode(want)); got == nil || *got != want {
			t.Errorf("%+v, want %+v", got, want)
		}
	}
	for _, bad := range []string{"", "%", "aGVsbG8="} {
		if got := p.Decode(bad); got != nil {
			t.Errorf("%q: %+v", bad, got)
		}
	}
	if got := mesh.ParseShort(want.Short()); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	if got := mesh.ParseShort("web;shop;web;v1;Kubernetes"); got.CanonicalRevision != "v1" || got.App != "" {
		t.Errorf("Istio's own: %+v", got)
	}
}

func TestAccessLog(t *testing.T) {
	t.Parallel()
	for format, check := range map[string]func(string) bool{
		"text": func(s string) bool { return strings.Contains(s, `"GET /a HTTP/1.1" 200 - `) },
		"json": func(s string) bool {
			var v map[string]any
			return json.Unmarshal([]byte(s), &v) == nil && v["response_code"] == 200.0 && v["upstream_host"] == "10.42.0.3:8080"
		},
	} {
		var out bytes.Buffer
		o := &telemetry.Observer{Metrics: telemetry.New(), Log: telemetry.NewAccessLog(&out, format)}
		o.Request(exchange(200))
		if !check(out.String()) || strings.Count(out.String(), "\n") != 1 {
			t.Errorf("%s: %q", format, out.String())
		}
	}
}

// BenchmarkObserver is what counting one request costs.
func BenchmarkObserver(b *testing.B) {
	o := &telemetry.Observer{Metrics: telemetry.New()}
	x := exchange(200)
	b.ReportAllocs()
	for b.Loop() {
		o.Request(x)
	}
}
