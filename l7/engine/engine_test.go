package engine_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/periplus/periplus/l7"
	"github.com/periplus/periplus/l7/engine"
)

// testTimeout ends tests that hang; nothing is measured with it.
const testTimeout = 30 * time.Second

// start runs an engine with a snapshot until the test ends.
func start(t testing.TB, s *l7.Snapshot) *engine.Engine {
	t.Helper()
	e := engine.New(engine.Config{DrainTimeout: 5 * time.Second})
	if err := e.Apply(s); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := e.Run(ctx); err != nil {
			t.Error(err)
		}
	}()
	t.Cleanup(func() { cancel(); <-done })
	return e
}

// snapshot is one listener "web" with routes to the clusters of backends, "app" being the first.
func snapshot(routes []*l7.Route, endpoints ...string) *l7.Snapshot {
	if routes == nil {
		routes = []*l7.Route{{Forward: &l7.Forward{Cluster: "app"}}}
	}
	s := &l7.Snapshot{
		Listeners: []*l7.Listener{{Name: "web", Address: "127.0.0.1:0", Chains: []*l7.FilterChain{{HTTP: &l7.HTTPConnectionManager{
			RouteConfig: "web", ForwardedFor: l7.ForwardedForReplace, Upgrades: []string{"websocket"},
		}}}}},
		Routes:    map[string]*l7.RouteConfiguration{"web": {VirtualHosts: []*l7.VirtualHost{{Name: "all", Domains: []string{"*"}, Routes: routes}}}},
		Clusters:  map[string]*l7.Cluster{"app": {}},
		Endpoints: map[string][]*l7.Endpoint{},
	}
	for _, e := range endpoints {
		s.Endpoints["app"] = append(s.Endpoints["app"], &l7.Endpoint{Address: e})
	}
	return s
}

func backend(t testing.TB, h http.HandlerFunc) string {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s.Listener.Addr().String()
}

func client(t testing.TB) *http.Client {
	t.Helper()
	tr := &http.Transport{MaxIdleConnsPerHost: 10, DisableCompression: true}
	t.Cleanup(tr.CloseIdleConnections)
	return &http.Client{Transport: tr, Timeout: testTimeout, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

func get(t testing.TB, c *http.Client, url string) (int, string, http.Header) {
	t.Helper()
	r, err := c.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	b, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return r.StatusCode, string(b), r.Header
}

func TestForwardsRequests(t *testing.T) {
	t.Parallel()
	app := backend(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		w.Header().Set("X-Seen", r.Host+" "+r.Header.Get("X-Forwarded-For")+" "+r.Header.Get("X-Forwarded-Proto")+" "+r.Header.Get("X-Real-Ip"))
		w.WriteHeader(201)
		fmt.Fprintf(w, "%s %s %d %s", r.Method, r.RequestURI, len(body), strings.Join(r.TransferEncoding, ","))
	})
	e := start(t, snapshot(nil, app))
	c := client(t)
	url := "http://" + e.Addr("web")
	for _, test := range []struct {
		method, path string
		body         io.Reader
		want         string
	}{
		{"GET", "/a?b=c", nil, "GET /a?b=c 0 "},
		{"POST", "/p", strings.NewReader("hello"), "POST /p 5 "},
		{"POST", "/p", io.LimitReader(zeros{}, 1<<20), "POST /p 1048576 chunked"},
		{"PUT", "/big", strings.NewReader(strings.Repeat("x", 300<<10)), "PUT /big 307200 "},
		{"DELETE", "/%2e%2e//x", nil, "DELETE /%2e%2e//x 0 "},
	} {
		q, err := http.NewRequest(test.method, url+test.path, test.body)
		if err != nil {
			t.Fatal(err)
		}
		q.Host = "shop.example:80"
		q.Header.Set("X-Forwarded-For", "6.6.6.6")
		r, err := c.Do(q)
		if err != nil {
			t.Fatalf("%s %s: %v", test.method, test.path, err)
		}
		b, err := io.ReadAll(r.Body)
		_ = r.Body.Close()
		if err != nil || string(b) != test.want || r.StatusCode != 201 {
			t.Errorf("%s %s: %d %q (%v), want 201 %q", test.method, test.path, r.StatusCode, b, err, test.want)
		}
		if got, want := r.Header.Get("X-Seen"), "shop.example:80 127.0.0.1 http 127.0.0.1"; got != want {
			t.Errorf("endpoint saw %q, want %q", got, want)
		}
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

func TestResponseBodies(t *testing.T) {
	t.Parallel()
	const big = 3 << 20
	app := backend(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/length":
			w.Header().Set("Content-Length", fmt.Sprint(big))
			_, _ = io.CopyN(w, zeros{}, big)
		case "/chunked":
			for range 100 {
				_, _ = w.Write(make([]byte, 1000))
				w.(http.Flusher).Flush()
			}
		case "/trailer":
			w.Header().Set("Trailer", "X-Sum")
			_, _ = w.Write([]byte("body"))
			w.Header().Set("X-Sum", "42")
		case "/close":
			c, _, _ := w.(http.Hijacker).Hijack()
			_, _ = c.Write([]byte("HTTP/1.0 200 OK\r\n\r\nuntil the end"))
			_ = c.Close()
		case "/empty":
			w.WriteHeader(204)
		case "/cut":
			w.Header().Set("Content-Length", "100")
			_, _ = w.Write([]byte("short"))
			w.(http.Flusher).Flush()
			panic(http.ErrAbortHandler)
		}
	})
	e := start(t, snapshot(nil, app))
	c := client(t)
	url := "http://" + e.Addr("web")
	for _, test := range []struct {
		path   string
		status int
		length int
	}{{"/length", 200, big}, {"/chunked", 200, 100_000}, {"/trailer", 200, 4}, {"/close", 200, 13}, {"/empty", 204, 0}} {
		status, body, _ := get(t, c, url+test.path)
		if status != test.status || len(body) != test.length {
			t.Errorf("%s: %d, %d bytes, want %d, %d bytes", test.path, status, len(body), test.status, test.length)
		}
	}
	r, err := c.Get(url + "/trailer")
	if err != nil {
		t.Fatal(err)
	}
	_, _ = io.ReadAll(r.Body)
	_ = r.Body.Close()
	if got := r.Trailer.Get("X-Sum"); got != "42" {
		t.Errorf("trailer %q, want 42", got)
	}
	r, err = c.Get(url + "/cut")
	if err == nil {
		_, err = io.ReadAll(r.Body)
		_ = r.Body.Close()
	}
	if err == nil {
		t.Error("a response that was cut off looks complete")
	}
	if h, err := c.Head(url + "/length"); err != nil || h.ContentLength != big {
		t.Errorf("HEAD: length %d (%v), want %d", h.ContentLength, err, big)
	}
}

// TestStreams checks that pieces are passed on before a message is complete, both ways.
func TestStreams(t *testing.T) {
	t.Parallel()
	app := backend(t, func(w http.ResponseWriter, r *http.Request) {
		_ = http.NewResponseController(w).EnableFullDuplex()
		w.WriteHeader(200)
		w.(http.Flusher).Flush()
		in := bufio.NewReader(r.Body)
		for {
			line, err := in.ReadString('\n')
			if err != nil {
				return
			}
			_, _ = io.WriteString(w, "echo "+line)
			w.(http.Flusher).Flush()
		}
	})
	e := start(t, snapshot(nil, app))
	r, w := io.Pipe()
	q, err := http.NewRequest("POST", "http://"+e.Addr("web")+"/", r)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := client(t).Do(q)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	in := bufio.NewReader(resp.Body)
	for i := range 3 {
		fmt.Fprintf(w, "%d\n", i)
		line, err := in.ReadString('\n')
		if want := fmt.Sprintf("echo %d\n", i); err != nil || line != want {
			t.Fatalf("got %q (%v), want %q", line, err, want)
		}
	}
	_ = w.Close()
	if rest, err := io.ReadAll(in); err != nil || len(rest) > 0 {
		t.Errorf("at the end: %q, %v", rest, err)
	}
}

func TestUpgrade(t *testing.T) {
	t.Parallel()
	app := backend(t, func(w http.ResponseWriter, r *http.Request) {
		if !strings.EqualFold(r.Header.Get("Upgrade"), "websocket") {
			w.WriteHeader(426)
			return
		}
		c, rw, err := w.(http.Hijacker).Hijack()
		if err != nil {
			return
		}
		defer c.Close()
		_, _ = rw.WriteString("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\nfirst ")
		_ = rw.Flush()
		_, _ = io.Copy(c, rw)
	})
	e := start(t, snapshot(nil, app))
	c, err := net.Dial("tcp", e.Addr("web"))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(testTimeout))
	fmt.Fprint(c, "GET /ws HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: WebSocket\r\n\r\nsecond")
	in := bufio.NewReader(c)
	resp, err := http.ReadResponse(in, nil)
	if err != nil || resp.StatusCode != 101 {
		t.Fatalf("%v, %v", resp, err)
	}
	got := make([]byte, len("first second"))
	if _, err := io.ReadFull(in, got); err != nil || string(got) != "first second" {
		t.Errorf("got %q, %v", got, err)
	}
	if status, _, _ := get(t, client(t), "http://"+e.Addr("web")+"/ws"); status != 426 {
		t.Errorf("without Upgrade: %d, want 426", status)
	}
}

func TestChangesDropNothing(t *testing.T) {
	t.Parallel()
	names := func(name string) string {
		return backend(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, name) })
	}
	a, b := names("a"), names("b")
	e := start(t, snapshot(nil, a))
	c, err := net.Dial("tcp", e.Addr("web"))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(testTimeout))
	in := bufio.NewReader(c)
	ask := func() string {
		fmt.Fprint(c, "GET / HTTP/1.1\r\nHost: a\r\n\r\n")
		resp, err := http.ReadResponse(in, nil)
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(resp.Body)
		return string(body)
	}
	for i := range 20 {
		want, to := "a", a
		if i%2 == 1 {
			want, to = "b", b
		}
		s := snapshot(nil, to)
		s.Listeners[0].Address = "127.0.0.1:0" // the same: the socket stays
		if err := e.Apply(s); err != nil {
			t.Fatal(err)
		}
		if got := ask(); got != want {
			t.Fatalf("change %d: answered by %s, want %s", i, got, want)
		}
	}
}

func TestListenerErrorLeavesTheRest(t *testing.T) {
	t.Parallel()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	e := engine.New(engine.Config{})
	t.Cleanup(e.Close)
	s := snapshot(nil, backend(t, func(http.ResponseWriter, *http.Request) {}))
	other := *s.Listeners[0]
	other.Name, other.Address = "taken", taken.Addr().String()
	s.Listeners = append(s.Listeners, &other)
	err = e.Apply(s)
	if err == nil || !strings.Contains(err.Error(), "listener taken") {
		t.Fatalf("error %v, want one about the listener", err)
	}
	if status, _, _ := get(t, client(t), "http://"+e.Addr("web")); status != 200 {
		t.Errorf("the other listener: %d", status)
	}
	_ = taken.Close()
	if err := e.Apply(s); err != nil {
		t.Errorf("after the port is free: %v", err)
	}
}
