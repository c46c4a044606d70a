package engine_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/periplus/periplus/l7"
	"github.com/periplus/periplus/l7/filter/fault"
	"github.com/periplus/periplus/l7/filter/headers"
	"github.com/periplus/periplus/l7/filter/ratelimit"
	"github.com/periplus/periplus/l7/filter/rbac"
	"github.com/periplus/periplus/linux/porttest"
)

func route(f *l7.Forward, filters ...l7.Filter) []*l7.Route {
	f.Cluster = "app"
	return []*l7.Route{{Forward: f, Filters: filters}}
}

func TestFailures(t *testing.T) {
	t.Parallel()
	hang := make(chan struct{})
	t.Cleanup(func() { close(hang) })
	slow := backend(t, func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-hang:
		case <-r.Context().Done():
		}
	})
	broken := backend(t, func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	for name, test := range map[string]struct {
		routes    []*l7.Route
		endpoints []string
		status    int
		body      string
		flags     l7.Flag
	}{
		"no endpoint":   {nil, nil, 503, "no healthy upstream", l7.FlagNoHealthy},
		"no cluster":    {[]*l7.Route{{Forward: &l7.Forward{Cluster: "nobody"}}}, nil, 503, "", l7.FlagNoCluster},
		"no route":      {[]*l7.Route{{Match: l7.RouteMatch{Path: l7.PathMatch{Kind: l7.PathExact, Value: "/other"}}, Direct: &l7.Reply{Status: 200}}}, nil, 404, "", l7.FlagNoRoute},
		"closed port":   {nil, []string{porttest.Closed(t)}, 503, "connection failure", l7.FlagConnectFailure},
		"reset":         {nil, []string{broken}, 503, "connection termination", l7.FlagUpstreamReset},
		"timeout":       {route(&l7.Forward{Timeout: 20 * time.Millisecond}), []string{slow}, 504, "upstream request timeout", l7.FlagUpstreamTimeout},
		"slow timeout":  {route(&l7.Forward{Timeout: 300 * time.Millisecond}), []string{slow}, 504, "upstream request timeout", l7.FlagUpstreamTimeout},
		"idle timeout":  {route(&l7.Forward{IdleTimeout: 20 * time.Millisecond}), []string{slow}, 504, "upstream request timeout", l7.FlagUpstreamTimeout},
		"tries timeout": {route(&l7.Forward{Retry: &l7.RetryPolicy{On: l7.Retry5xx, Attempts: 1, PerTry: 10 * time.Millisecond, BackOff: time.Millisecond}}), []string{slow}, 504, "", l7.FlagUpstreamTimeout | l7.FlagRetryLimit},
		"fault":         {route(&l7.Forward{}, &fault.Filter{AbortStatus: 418, AbortFraction: fault.All}), nil, 418, "fault filter abort", l7.FlagFault},
		"denied":        {route(&l7.Forward{}, &rbac.Filter{Action: rbac.Allow}), nil, 403, "RBAC: access denied", l7.FlagDenied},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := snapshot(test.routes, test.endpoints...)
			seen := make(chan l7.Flag, 1)
			s.Listeners[0].Chains[0].HTTP.Observers = []l7.Observer{flags(seen)}
			e := start(t, s)
			status, body, _ := get(t, client(t), "http://"+e.Addr("web"))
			if status != test.status || !strings.Contains(body, test.body) {
				t.Errorf("%d %q, want %d %q", status, body, test.status, test.body)
			}
			if got := <-seen; got != test.flags {
				t.Errorf("flags %s, want %s", got, test.flags)
			}
		})
	}
}

type flags chan l7.Flag

func (f flags) Request(x *l7.Exchange) { f <- x.Flags }

func TestRetries(t *testing.T) {
	t.Parallel()
	var tries atomic.Int32
	app := backend(t, func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		if tries.Add(1)%3 != 0 {
			w.WriteHeader(503)
			return
		}
		_, _ = fmt.Fprintf(w, "%d", len(b))
	})
	e := start(t, snapshot(route(&l7.Forward{Retry: &l7.RetryPolicy{On: l7.RetryGatewayError, Attempts: 2, BackOff: time.Millisecond}}), app))
	for _, size := range []int{0, 100, 50_000} {
		r, err := client(t).Post("http://"+e.Addr("web"), "text/plain", strings.NewReader(strings.Repeat("x", size)))
		if err != nil {
			t.Fatal(err)
		}
		b, _ := io.ReadAll(r.Body)
		_ = r.Body.Close()
		if r.StatusCode != 200 || string(b) != fmt.Sprint(size) {
			t.Errorf("%d bytes after %d tries: %d %q", size, tries.Load(), r.StatusCode, b)
		}
	}
	// The other endpoint is tried.
	dead := start(t, snapshot(route(&l7.Forward{Retry: &l7.RetryPolicy{On: l7.RetryConnectFailure, Attempts: 1, BackOff: time.Millisecond}}), porttest.Closed(t),
		backend(t, func(http.ResponseWriter, *http.Request) {})))
	for range 10 {
		if status, _, _ := get(t, client(t), "http://"+dead.Addr("web")); status != 200 {
			t.Errorf("with one dead endpoint of two: %d", status)
		}
	}
}

// TestStaleConnection has an endpoint that closes its connection after each response
// without saying so.
func TestStaleConnection(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				if _, err := http.ReadRequest(bufio.NewReader(c)); err == nil {
					_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
				}
				_ = c.Close()
			}()
		}
	}()
	e := start(t, snapshot(nil, l.Addr().String()))
	for range 50 {
		if status, body, _ := get(t, client(t), "http://"+e.Addr("web")); status != 200 {
			t.Fatalf("%d %s", status, body)
		}
	}
}

func TestOutlierDetection(t *testing.T) {
	t.Parallel()
	var bad atomic.Int32
	failing := backend(t, func(w http.ResponseWriter, _ *http.Request) { bad.Add(1); w.WriteHeader(500) })
	good := backend(t, func(http.ResponseWriter, *http.Request) {})
	s := snapshot(nil, failing, good)
	s.Clusters["app"] = &l7.Cluster{Outlier: &l7.OutlierDetection{Consecutive5xx: 3, BaseEjection: time.Hour, MaxEjection: time.Hour, MaxPercent: 50}}
	e := start(t, s)
	for range 50 {
		get(t, client(t), "http://"+e.Addr("web"))
	}
	if got := bad.Load(); got != 3 {
		t.Errorf("the failing endpoint got %d requests, want 3", got)
	}
	ejected := 0
	for _, h := range e.Cluster("app") {
		if h.Ejected {
			ejected++
		}
	}
	if ejected != 1 {
		t.Errorf("%d endpoints are ejected, want 1", ejected)
	}
}

func TestCircuitBreaker(t *testing.T) {
	t.Parallel()
	entered, leave := make(chan struct{}, 10), make(chan struct{})
	app := backend(t, func(http.ResponseWriter, *http.Request) { entered <- struct{}{}; <-leave })
	s := snapshot(nil, app)
	s.Clusters["app"] = &l7.Cluster{Breaker: l7.CircuitBreaker{MaxConnections: 1, MaxPending: 1}}
	e := start(t, s)
	url := "http://" + e.Addr("web")
	results := make(chan int, 3)
	for range 3 {
		go func() {
			r, err := http.Get(url) //nolint:noctx // a test
			if err != nil {
				results <- 0
				return
			}
			_ = r.Body.Close()
			results <- r.StatusCode
		}()
	}
	<-entered
	if got := <-results; got != 503 {
		t.Errorf("the request beyond connection and queue: %d, want 503", got)
	}
	close(leave)
	for range 2 {
		if got := <-results; got != 200 {
			t.Errorf("a request within: %d, want 200", got)
		}
	}
}

func TestRateLimit(t *testing.T) {
	t.Parallel()
	limiter := ratelimit.NewLimiter(0.0001, 5)
	e := start(t, snapshot([]*l7.Route{{Direct: &l7.Reply{Status: 200}, Filters: []l7.Filter{&ratelimit.Filter{Limiter: limiter, Key: ratelimit.ClientAddress}}}}))
	got := map[int]int{}
	for range 8 {
		status, _, _ := get(t, client(t), "http://"+e.Addr("web"))
		got[status]++
	}
	if got[200] != 5 || got[429] != 3 {
		t.Errorf("statuses %v, want 5 × 200 and 3 × 429", got)
	}
}

func TestFiltersAndMirror(t *testing.T) {
	t.Parallel()
	mirrored := make(chan string, 1)
	shadow := backend(t, func(_ http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		mirrored <- r.Header.Get("X-Set") + " " + string(b)
	})
	app := backend(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("X-Drop", "1")
		_, _ = io.WriteString(w, r.Header.Get("X-Set")+" "+r.Header.Get("X-Remove")+" "+r.URL.String())
	})
	prefix := "/new"
	s := snapshot([]*l7.Route{{
		Match:   l7.RouteMatch{Path: l7.PathMatch{Kind: l7.PathSegments, Value: "/old"}},
		Filters: []l7.Filter{headers.New(headers.Change{Set: []l7.Field{{Name: "X-Set", Value: "set"}}, Remove: []string{"x-remove"}}, headers.Change{Remove: []string{"x-drop"}})},
		Forward: &l7.Forward{Cluster: "app", Path: &l7.PathRewrite{Prefix: &prefix}, Mirrors: []l7.Mirror{{Cluster: "shadow"}}},
	}}, app)
	s.Clusters["shadow"] = &l7.Cluster{}
	s.Endpoints["shadow"] = []*l7.Endpoint{{Address: shadow}}
	e := start(t, s)
	q, _ := http.NewRequest("POST", "http://"+e.Addr("web")+"/old/x?q=1", strings.NewReader("body"))
	q.Header.Set("X-Remove", "here")
	r, err := client(t).Do(q)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	b, _ := io.ReadAll(r.Body)
	if string(b) != "set  /new/x?q=1" || r.Header.Get("X-Drop") != "" {
		t.Errorf("%q, header %v", b, r.Header)
	}
	if got := <-mirrored; got != "set body" {
		t.Errorf("mirrored %q", got)
	}
}

// TestClientGone checks that an endpoint is not left working for a client that has gone.
func TestClientGone(t *testing.T) {
	t.Parallel()
	entered, gone := make(chan struct{}), make(chan struct{})
	app := backend(t, func(_ http.ResponseWriter, r *http.Request) {
		close(entered)
		<-r.Context().Done()
		close(gone)
	})
	e := start(t, snapshot(nil, app))
	c, err := net.Dial("tcp", e.Addr("web"))
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprint(c, "GET / HTTP/1.1\r\nHost: a\r\n\r\n")
	<-entered
	_ = c.Close()
	<-gone
}
