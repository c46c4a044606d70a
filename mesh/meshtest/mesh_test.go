package meshtest_test

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/periplus/periplus/mesh/meshtest"
)

// who answers its name, and keeps the last request's headers.
type who struct {
	name   string
	status atomic.Int32
	last   atomic.Pointer[http.Header]
	served atomic.Int32
}

func (w *who) ServeHTTP(out http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/never" {
		<-r.Context().Done()
		return
	}
	h := r.Header.Clone()
	w.last.Store(&h)
	w.served.Add(1)
	if s := w.status.Load(); s != 0 {
		out.WriteHeader(int(s))
	}
	fmt.Fprint(out, w.name)
}

func get(t *testing.T, c *http.Client, url string) (int, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := c.Do(r)
	if err != nil {
		return 0, err.Error()
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		return 0, err.Error()
	}
	return resp.StatusCode, string(b)
}

// until asks until the answer is as wanted, many times in a row: configuration is on
// its way, to one proxy before the other.
func until(t *testing.T, c *http.Client, url string, want func(status int, body string) bool) {
	t.Helper()
	status, body := 0, ""
	row := 0
	for range 5000 {
		if status, body = get(t, c, url); !want(status, body) {
			row = 0
			continue
		}
		if row++; row == 30 {
			return
		}
	}
	t.Fatalf("%s: %d %q, not as wanted after 5000 requests", url, status, body)
}

func is(status int) func(int, string) bool {
	return func(s int, _ string) bool { return s == status }
}

// shop is a mesh with a client and the service web, of two versions.
func shop(t *testing.T) (m *meshtest.Mesh, client *meshtest.Pod, v1, v2 *who) {
	t.Helper()
	m = meshtest.New(t)
	v1, v2 = &who{name: "v1"}, &who{name: "v2"}
	m.Pod("shop", "web-v1", map[string]string{"app": "web", "version": "v1"}, v1)
	m.Pod("shop", "web-v2", map[string]string{"app": "web", "version": "v2"}, v2)
	m.Service("shop", "web", map[string]string{"app": "web"}, "http", 80)
	client = m.Pod("shop", "client", map[string]string{"app": "client"}, nil)
	until(t, client.Client(), "http://web.shop/", is(200))
	return m, client, v1, v2
}

func metrics(t *testing.T, p *meshtest.Pod) string {
	t.Helper()
	var b strings.Builder
	if err := p.Sidecar.Metrics().Write(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestMutualTLSAndTelemetry(t *testing.T) {
	t.Parallel()
	m := meshtest.New(t)
	app := &who{name: "v1"}
	server := m.Pod("shop", "web", map[string]string{"app": "web", "version": "v1"}, app)
	m.Service("shop", "web", map[string]string{"app": "web"}, "http", 80)
	client := m.Pod("front", "client", map[string]string{"app": "client"}, nil)
	until(t, client.Client(), "http://web.shop/", is(200))
	h := *app.last.Load()
	for _, name := range []string{"X-Request-Id", "Traceparent", "X-B3-Traceid", "X-B3-Spanid"} {
		if h.Get(name) == "" {
			t.Errorf("the application has not been sent %s: %v", name, h)
		}
	}
	if h.Get("X-Envoy-Peer-Metadata") != "" {
		t.Error("the application has been sent what is for its sidecar")
	}
	for name, p := range map[string]*meshtest.Pod{"source": client, "destination": server} {
		text := metrics(t, p)
		for _, want := range []string{
			`istio_requests_total{reporter="` + name + `"`, `source_workload="client"`, `source_workload_namespace="front"`, `destination_workload_namespace="shop"`,
			`destination_service="web.shop.svc.cluster.local"`, `destination_version="v1"`, `response_code="200"`,
			`source_principal="spiffe://cluster.local/ns/front/sa/front"`, `destination_principal="spiffe://cluster.local/ns/shop/sa/shop"`,
			`istio_request_duration_milliseconds_bucket`,
		} {
			if !strings.Contains(text, want) {
				t.Errorf("metrics of the %s have no %s:\n%s", name, want, text)
			}
		}
	}
	if text := metrics(t, server); !strings.Contains(text, `connection_security_policy="mutual_tls"`) {
		t.Errorf("the server has not seen mutual TLS:\n%s", text)
	}
}

func TestStrictRefusesPlainText(t *testing.T) {
	t.Parallel()
	m, client, _, _ := shop(t)
	stranger := m.Stranger("other", "stranger", nil, nil)
	until(t, stranger.Client(), "http://web.shop/", is(200)) // permissive
	m.Apply("PeerAuthentication", "shop", "default", `{"mtls": {"mode": "STRICT"}}`)
	until(t, stranger.Client(), "http://web.shop/", is(0))
	if s, b := get(t, client.Client(), "http://web.shop/"); s != 200 {
		t.Errorf("a client of the mesh gets %d %s", s, b)
	}
}

const subsets = `{"host": "web", "subsets": [{"name": "v1", "labels": {"version": "v1"}}, {"name": "v2", "labels": {"version": "v2"}}]}`

func TestCanary(t *testing.T) {
	t.Parallel()
	m, client, v1, v2 := shop(t)
	m.Apply("DestinationRule", "shop", "web", subsets)
	m.Apply("VirtualService", "shop", "web", `{"hosts": ["web"], "http": [
		{"match": [{"headers": {"x-canary": {"exact": "always"}}}], "route": [{"destination": {"host": "web", "subset": "v2"}}]},
		{"match": [{"uri": {"exact": "/ready"}}], "directResponse": {"status": 299}},
		{"route": [{"destination": {"host": "web", "subset": "v1"}, "weight": 90}, {"destination": {"host": "web", "subset": "v2"}, "weight": 10}]}]}`)
	c := client.Client()
	until(t, c, "http://web.shop/ready", is(299))
	a, b := v1.served.Load(), v2.served.Load()
	const n = 1000
	for range n {
		if s, body := get(t, c, "http://web.shop/"); s != 200 {
			t.Fatalf("%d %s", s, body)
		}
	}
	a, b = v1.served.Load()-a, v2.served.Load()-b
	// Six standard deviations of a binomial with 10 %.
	if b < 43 || b > 157 || a+b != n {
		t.Errorf("of %d requests v1 got %d and v2 %d, want about 90 and 10 percent", n, a, b)
	}
}

func TestRateLimit(t *testing.T) {
	t.Parallel()
	m, client, _, _ := shop(t)
	m.Apply("VirtualService", "shop", "web", `{"hosts": ["web"], "http": [
		{"match": [{"uri": {"exact": "/ready"}}], "directResponse": {"status": 299}},
		{"rateLimit": {"requestsPerUnit": 100, "unit": "HOUR"}, "route": [{"destination": {"host": "web"}}]}]}`)
	c := client.Client()
	until(t, c, "http://web.shop/ready", is(299))
	codes := map[int]int{}
	for range 150 {
		s, _ := get(t, c, "http://web.shop/")
		codes[s]++
	}
	if codes[200] < 100 || codes[200] > 101 || codes[429] < 49 {
		t.Errorf("150 requests: %v, want 100 times 200, then 429", codes)
	}
	if text := metrics(t, client); !strings.Contains(text, `response_flags="RL"`) {
		t.Errorf("no metric of the limit:\n%s", text)
	}
}

func TestFaultTimeoutRetry(t *testing.T) {
	t.Parallel()
	m, client, v1, v2 := shop(t)
	m.Apply("VirtualService", "shop", "web", `{"hosts": ["web"], "http": [
		{"match": [{"uri": {"prefix": "/abort"}}], "fault": {"abort": {"httpStatus": 418, "percentage": {"value": 100}}}, "route": [{"destination": {"host": "web"}}]},
		{"match": [{"uri": {"prefix": "/old"}}], "rewrite": {"uri": "/new"}, "headers": {"request": {"set": {"x-by": "mesh"}}}, "route": [{"destination": {"host": "web"}}]},
		{"match": [{"uri": {"prefix": "/never"}}], "timeout": "0.1s", "route": [{"destination": {"host": "web"}}]},
		{"match": [{"uri": {"prefix": "/cors"}}], "corsPolicy": {"allowOrigins": [{"exact": "https://a.example"}], "allowMethods": ["GET"]}, "route": [{"destination": {"host": "web"}}]},
		{"match": [{"uri": {"prefix": "/moved"}}], "redirect": {"uri": "/there", "redirectCode": 302}},
		{"retries": {"attempts": 3, "retryOn": "5xx"}, "route": [{"destination": {"host": "web"}}]}]}`)
	c := client.Client()
	until(t, c, "http://web.shop/abort", is(418))
	if s, _ := get(t, c, "http://web.shop/moved"); s != 302 {
		t.Errorf("redirect: %d", s)
	}
	if s, _ := get(t, c, "http://web.shop/never"); s != 504 {
		t.Errorf("time limit: %d", s)
	}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://web.shop/cors", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Origin", "https://a.example")
	if resp, err := c.Do(r); err != nil || resp.Header.Get("Access-Control-Allow-Origin") != "https://a.example" {
		t.Errorf("CORS: %v %v", resp, err)
	} else {
		_ = resp.Body.Close()
	}
	if s, _ := get(t, c, "http://web.shop/old/x"); s != 200 {
		t.Errorf("rewrite: %d", s)
	}
	by := ""
	for _, w := range []*who{v1, v2} {
		by += (*w.last.Load()).Get("X-By")
	}
	if !strings.Contains(by, "mesh") {
		t.Error("the header was not set")
	}
	v1.status.Store(503)
	for range 50 {
		if s, b := get(t, c, "http://web.shop/"); s != 200 || b != "v2" {
			t.Fatalf("with retries: %d %s", s, b)
		}
	}
}

func TestOutlierDetection(t *testing.T) {
	t.Parallel()
	m, client, v1, _ := shop(t)
	m.Apply("DestinationRule", "shop", "web", `{"host": "web", "trafficPolicy": {"loadBalancer": {"simple": "ROUND_ROBIN"},
		"outlierDetection": {"consecutive5xxErrors": 5, "baseEjectionTime": "300s", "maxEjectionPercent": 50}}}`)
	m.Apply("VirtualService", "shop", "web", `{"hosts": ["web"], "http": [
		{"match": [{"uri": {"exact": "/ready"}}], "directResponse": {"status": 299}}, {"route": [{"destination": {"host": "web"}}]}]}`)
	c := client.Client()
	until(t, c, "http://web.shop/ready", is(299))
	v1.status.Store(500)
	before := v1.served.Load()
	failures := 0
	for range 100 {
		if s, _ := get(t, c, "http://web.shop/"); s == 500 {
			failures++
		}
	}
	if failures != 5 || v1.served.Load()-before != 5 {
		t.Errorf("%d failures, %d of them served, want 5: then it is left out", failures, v1.served.Load()-before)
	}
}

func TestAuthorization(t *testing.T) {
	t.Parallel()
	m, client, _, _ := shop(t)
	foreign := m.Pod("front", "foreign", map[string]string{"app": "front"}, nil)
	c, f := client.Client(), foreign.Client()
	m.Apply("AuthorizationPolicy", "shop", "allow", `{"selector": {"matchLabels": {"app": "web"}}, "rules": [
		{"from": [{"source": {"namespaces": ["shop"]}}]},
		{"from": [{"source": {"principals": ["cluster.local/ns/front/sa/front"]}}], "to": [{"operation": {"methods": ["GET"], "paths": ["/public*"]}}]}]}`)
	until(t, f, "http://web.shop/secret", is(403))
	for _, check := range []struct {
		client *http.Client
		path   string
		want   int
	}{{c, "/secret", 200}, {f, "/public/a", 200}, {f, "/secret", 403}, {f, "/public/../secret", 403}} {
		if s, b := get(t, check.client, "http://web.shop"+check.path); s != check.want {
			t.Errorf("%s: %d %s, want %d", check.path, s, b, check.want)
		}
	}
	if _, b := get(t, f, "http://web.shop/secret"); b != "RBAC: access denied" {
		t.Errorf("the refusal says %q", b)
	}
	m.Apply("AuthorizationPolicy", "shop", "deny", `{"action": "DENY", "rules": [{"to": [{"operation": {"paths": ["/admin"]}}]}]}`)
	until(t, c, "http://web.shop/admin", is(403))
	m.Apply("AuthorizationPolicy", "shop", "nothing", `{}`)
	m.Delete("AuthorizationPolicy", "shop", "allow")
	until(t, c, "http://web.shop/secret", is(403)) // an ALLOW policy without rules allows nothing
}

func TestControlPlaneStops(t *testing.T) {
	t.Parallel()
	m, client, _, _ := shop(t)
	m.Stop()
	c := client.Client()
	for range 100 {
		if s, b := get(t, c, "http://web.shop/"); s != 200 {
			t.Fatalf("%d %s", s, b)
		}
	}
}

// A port without a protocol in its name: HTTP is recognized, the rest is passed on.
func TestUnknownProtocol(t *testing.T) {
	t.Parallel()
	m := meshtest.New(t)
	m.Pod("shop", "any", map[string]string{"app": "any"}, &who{name: "any"})
	m.Service("shop", "any", map[string]string{"app": "any"}, "", 9000)
	client := m.Pod("shop", "client", map[string]string{"app": "client"}, nil)
	until(t, client.Client(), "http://any.shop:9000/", is(200))
	m.Apply("PeerAuthentication", "istio-system", "default", `{"mtls": {"mode": "STRICT"}}`)
	until(t, m.Stranger("x", "stranger", nil, nil).Client(), "http://any.shop:9000/", is(0))
	if s, b := get(t, client.Client(), "http://any.shop:9000/"); s != 200 || b != "any" {
		t.Errorf("HTTP: %d %s", s, b)
	}
	// Bytes that are no HTTP reach the application, which answers 400.
	conn, err := client.Dial(t, "any.shop:9000")
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, "\x01\x02 no http\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(conn).ReadString('\n')
	if err != nil || !strings.Contains(line, "400") {
		t.Errorf("TCP: %q, %v", line, err)
	}
}
