package journey_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/periplus/periplus/journey"
)

const trace = journey.TraceID("0123456789abcdef0123456789abcdef")

func span(step string, start time.Time) journey.Span {
	return journey.Span{Trace: trace, Component: "kubelet", Step: step, Kind: "Pod", Name: "web", UID: "u", Node: "n1", Start: start, End: start.Add(time.Millisecond)}
}

func steps(spans []journey.Span) []string {
	out := make([]string, len(spans))
	for i, s := range spans {
		out[i] = s.Step
	}
	return out
}

// TestRing: a log keeps the newest spans, by number and by memory.
func TestRing(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		attr    string
		n, most int
	}{
		{"few", "", 100, 100},
		{"many", "", 40000, 16384},
		{"large", strings.Repeat("x", 16<<10), 2000, 520},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			l, begin := journey.NewLog(), time.Now()
			for i := range c.n {
				l.Record(span(fmt.Sprint(i), begin.Add(time.Duration(i))).With("a", c.attr))
			}
			got := l.Trace(trace)
			if len(got) > c.most || len(got) < c.most*9/10 {
				t.Fatalf("%d of %d spans are kept, want about %d", len(got), c.n, c.most)
			}
			for i, s := range got {
				if want := fmt.Sprint(c.n - len(got) + i); s.Step != want {
					t.Fatalf("span %d is %s, want %s: the newest are kept", i, s.Step, want)
				}
			}
		})
	}
}

// TestClocks: times of a node whose clock is wrong are put right, those of one whose
// clock may be right are left alone.
func TestClocks(t *testing.T) {
	t.Parallel()
	now := time.Now()
	ms := func(n int) time.Duration { return time.Duration(n) * time.Millisecond }
	for _, c := range []struct {
		name   string
		offset time.Duration // of their clock
		ways   []int         // of batches and of their answers, in milliseconds
		want   time.Duration
		within time.Duration
	}{
		{"right", 0, []int{5, 5, 5}, 0, 0},
		{"right, batches that are slow", 0, []int{5, 400, 300, 5}, 0, 0},
		{"right, all are slow", 0, []int{900, 800, 900}, 0, 0},
		{"an hour behind", -time.Hour, []int{5, 400, 5}, time.Hour, 0},
		{"three seconds ahead", 3 * time.Second, []int{1, 1}, -3 * time.Second, 0},
		{"a little behind", -ms(100), []int{1, 1, 50}, ms(100), 0},
		{"only one batch", -time.Hour, []int{40}, time.Hour, ms(40)},
		{"only one batch, nearly right", -ms(100), []int{40}, 0, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			l := journey.NewLog()
			var last journey.Batch
			for i, way := range c.ways {
				at := now.Add(time.Duration(i) * 2 * time.Second)
				b := journey.Batch{Sent: at.Add(c.offset), RTT: last.RTT, Of: last.Sent, Spans: []journey.Span{span("a", at.Add(c.offset))}}
				l.Add(&b, "n1", true, at.Add(ms(way)))
				last = journey.Batch{Sent: b.Sent, RTT: 2 * ms(way)}
			}
			spans := l.Trace(trace)
			s := spans[len(spans)-1] // the first are put right less well
			if (s.Skew - c.want).Abs() > c.within {
				t.Errorf("it was shifted by %s, want %s", s.Skew, c.want)
			}
			if got := l.Shift("n1"); got != s.Skew {
				t.Errorf("shift of the node: %s, want %s", got, s.Skew)
			}
		})
	}
}

// TestServe: spans go in by POST, cut to size, under the name of the node that sends
// them, and come out by trace and by request.
func TestServe(t *testing.T) {
	t.Parallel()
	l := journey.NewLog()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { l.Serve(w, r, "n7", true) }))
	defer server.Close()
	post := func(body string) int {
		r, err := http.Post(server.URL+journey.Path, "application/json", strings.NewReader(body)) //nolint:noctx // a test
		if err != nil {
			t.Fatal(err)
		}
		_ = r.Body.Close()
		return r.StatusCode
	}
	get := func(query string) (out []journey.Span) {
		r, err := http.Get(server.URL + journey.Path + query) //nolint:noctx // a test
		if err != nil {
			t.Fatal(err)
		}
		defer r.Body.Close()
		if r.StatusCode != http.StatusOK {
			t.Fatalf("GET %s: %s", query, r.Status)
		}
		if err := json.NewDecoder(r.Body).Decode(&out); err != nil {
			t.Fatal(err)
		}
		return out
	}
	now := time.Now()
	hop := span("answered", now).With(journey.AttrRequest, "r1", journey.AttrHop, journey.HopServer)
	long := span(strings.Repeat("long", 1000), now.Add(time.Second))
	list, err := json.Marshal([]journey.Span{hop})
	if err != nil {
		t.Fatal(err)
	}
	batch, err := json.Marshal(journey.Batch{Dropped: 3, Spans: []journey.Span{long}})
	if err != nil {
		t.Fatal(err)
	}
	for body, want := range map[string]int{
		string(list): 204, string(batch): 204,
		`{"spans":[{"trace":"x"}]}`: 400, `[{"trace":"` + string(trace) + `"}]`: 400, `nonsense`: 400,
	} {
		if got := post(body); got != want {
			t.Errorf("POST %.40s: %d, want %d", body, got, want)
		}
	}
	all := get("?trace=" + string(trace))
	if len(all) != 3 || all[0].Step != "answered" || len(all[1].Step) > 1000 {
		t.Fatalf("spans %v", steps(all))
	}
	for _, s := range all {
		if s.Node != "n7" {
			t.Errorf("%.20s is of node %q: nodes send only their own steps", s.Step, s.Node)
		}
	}
	if !strings.HasPrefix(all[2].Step, "3 steps could not be sent") {
		t.Errorf("the gap is not told: %s", all[2].Step)
	}
	if hops := get("?request=r1"); len(hops) != 1 || hops[0].Attrs[journey.AttrHop] != journey.HopServer {
		t.Errorf("hops %v", hops)
	}
}

// TestAlign: what causes something comes before it, whatever the clocks say.
func TestAlign(t *testing.T) {
	t.Parallel()
	begin := time.Now()
	at := func(component, step, node string, ms int) journey.Span {
		s := journey.Span{Trace: trace, Component: component, Step: step, Kind: "Pod", Name: "web", UID: "u", Node: node}
		s.Start = begin.Add(time.Duration(ms) * time.Millisecond)
		s.End = s.Start
		return s
	}
	for _, c := range []struct {
		name  string
		shift int // of the node's clock, in milliseconds
		want  time.Duration
	}{{"right", 0, 0}, {"behind", -7, 5 * time.Millisecond}, {"ahead", 9, -4*time.Millisecond - time.Microsecond}} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			spans := []journey.Span{
				at("apiserver", "bound to n1", "", 10), at("endpointslice-controller", "endpoint slice of service web updated", "", 25),
				at("kubelet", "seen by the kubelet", "n1", 12+c.shift), at("kubelet", "sandbox created", "n1", 15+c.shift), at("kubelet", "ready", "n1", 20+c.shift),
				at("proxy", "service rules programmed", "n2", 26),
			}
			journey.Align(spans)
			want := []string{"bound to n1", "seen by the kubelet", "sandbox created", "ready", "endpoint slice of service web updated", "service rules programmed"}
			if got := steps(spans); strings.Join(got, "|") != strings.Join(want, "|") {
				t.Errorf("order %q", got)
			}
			if got := journey.Skews(spans)["n1"]; got != c.want {
				t.Errorf("the clock was moved by %s, want %s", got, c.want)
			}
		})
	}
}
