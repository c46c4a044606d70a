package meshtest_test

import (
	"strings"
	"testing"

	"github.com/periplus/periplus/journey"
	"github.com/periplus/periplus/mesh/meshtest"
)

// TestHops: the control plane is told of the first request that was answered between
// two workloads, by both sidecars and once, and records when a proxy has its
// configuration.
func TestHops(t *testing.T) {
	t.Parallel()
	m := meshtest.New(t)
	app := &who{name: "v1"}
	m.Pod("shop", "web", map[string]string{"app": "web"}, app)
	m.Service("shop", "web", map[string]string{"app": "web"}, "http", 80)
	client := m.Pod("front", "client", map[string]string{"app": "client"}, nil)
	until(t, client.Client(), "http://web.shop/", is(200)) // many of them
	var out, in journey.Span
	clients, accepted, told := map[string]journey.Span{}, map[string]bool{}, map[string]bool{}
	take := func(s journey.Span) {
		if s.Step == "xDS configuration accepted" {
			accepted[s.Name] = true
			return
		}
		a := s.Attrs
		key := strings.Join([]string{s.Name, s.Step, a["peer"], a["security"]}, " ")
		if told[key] || !strings.HasPrefix(s.Step, journey.FirstAnswer) {
			t.Errorf("told again, or no hop: %+v", s)
		}
		told[key] = true
		if a[journey.AttrHop] == journey.HopClient {
			clients[a[journey.AttrRequest]] = s
		} else if a["security"] == "mutual_tls" {
			in = s
		}
		out = clients[in.Attrs[journey.AttrRequest]]
	}
	for out.Name == "" || len(accepted) < 2 {
		select {
		case s := <-m.Journey:
			take(s)
		case <-t.Context().Done():
			t.Fatalf("hops %v, accepted by %v", told, accepted)
		}
	}
	if out.Name != "client" || in.Name != "web" || in.Attrs[journey.AttrHop] != journey.HopServer || in.Attrs[journey.AttrApplication] == "" {
		t.Errorf("hops %v and %v", out.Attrs, in.Attrs)
	}
	if out.Attrs[journey.AttrStatus] != "200" || in.Attrs["peer"] != "client" || out.Attrs["host"] != "web.shop.svc.cluster.local" {
		t.Errorf("hops %v and %v", out.Attrs, in.Attrs)
	}
	if out.End.Sub(out.Start) < in.End.Sub(in.Start) {
		t.Errorf("the client's hop took %s, the server's within it %s", out.End.Sub(out.Start), in.End.Sub(in.Start))
	}
	for len(m.Journey) > 0 {
		take(<-m.Journey)
	}
}
