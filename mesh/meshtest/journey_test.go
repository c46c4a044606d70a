package meshtest_test

import (
	"strings"
	"testing"
	"time"

	"github.com/periplus/periplus/journey"
	"github.com/periplus/periplus/mesh/meshtest"
)

// TestHops: the control plane is told of the first requests that were answered between
// two workloads, by both sidecars, and records when a proxy has its
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
	hops, accepted, told := map[string]journey.Span{}, map[string]bool{}, map[string]int{}
	take := func(s journey.Span) {
		if s.Step == "xDS configuration accepted" {
			accepted[s.Name] = true
			return
		}
		a := s.Attrs
		key := strings.Join([]string{s.Name, s.Step, a["peer"], a["security"]}, " ")
		if told[key]++; told[key] > 4 || !strings.HasPrefix(s.Step, journey.FirstAnswer) {
			t.Errorf("told too often, or no hop: %+v", s)
		}
		hops[a[journey.AttrRequest]+a[journey.AttrHop]] = s
		x, y := hops[a[journey.AttrRequest]+journey.HopClient], hops[a[journey.AttrRequest]+journey.HopServer]
		if x.Name != "" && y.Attrs["security"] == "mutual_tls" {
			out, in = x, y
		}
	}
	limit := time.After(time.Minute)
	for out.Name == "" || len(accepted) < 2 {
		select {
		case s := <-m.Journey:
			take(s)
		case <-limit:
			t.Fatalf("hops %v, accepted by %v", told, accepted)
		}
	}
	if out.Name != "client" || in.Name != "web" || in.Attrs[journey.AttrHop] != journey.HopServer || in.Attrs[journey.AttrApplication] == "" {
		t.Errorf("hops %v and %v", out.Attrs, in.Attrs)
	}
	if out.Attrs[journey.AttrStatus] != "200" || in.Attrs["peer"] != "client" || out.Attrs["host"] != "web.shop.svc.cluster.local" {
		t.Errorf("hops %v and %v", out.Attrs, in.Attrs)
	}
	for len(m.Journey) > 0 {
		take(<-m.Journey)
	}
}
