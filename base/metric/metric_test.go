package metric_test

import (
	"fmt"
	"sync"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/periplus/periplus/base/metric"
)

// TestFamily counts from many goroutines in series that come to be meanwhile.
func TestFamily(t *testing.T) {
	t.Parallel()
	s := metric.NewSet()
	c := s.Counter(metric.Stable, "things_total", "Number of things.", "kind", "of")
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for i := range 1000 {
				c.Of(metric.Labels{fmt.Sprint(i % 10), "x"}).Inc()
			}
		})
	}
	all.Wait()
	n := 0
	c.Each(func(metric.Labels, prometheus.Counter) { n++ })
	if n != 10 {
		t.Errorf("%d series", n)
	}
	families, err := s.Gather()
	if err != nil || len(families) != 1 {
		t.Fatalf("%v, %v", families, err)
	}
	if f := families[0]; f.GetName() != "things_total" || f.GetHelp() != "[STABLE] Number of things." || len(f.GetMetric()) != 10 {
		t.Errorf("%v", f)
	}
	for _, m := range families[0].GetMetric() {
		if m.GetCounter().GetValue() != 800 || m.GetLabel()[0].GetName() != "kind" || m.GetLabel()[1].GetValue() != "x" {
			t.Errorf("%v", m)
		}
	}
	if d := s.Definitions(); len(d) != 1 || d[0].Name != "things_total" || d[0].Type != "counter" {
		t.Errorf("%+v", d)
	}
}

// BenchmarkCount is what counting costs.
func BenchmarkCount(b *testing.B) {
	s := metric.NewSet()
	c := s.Counter(metric.Stable, "things_total", "Number of things.", "verb", "dry_run", "group", "version", "resource", "subresource", "scope")
	l := metric.Labels{"GET", "", "apps", "v1", "deployments", "", "namespace"}
	for b.Loop() {
		c.Of(l).Inc()
	}
}
