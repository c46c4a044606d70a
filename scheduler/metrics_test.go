package scheduler_test

import (
	"testing"
	"time"

	"github.com/periplus/periplus/base/metric"
	"github.com/periplus/periplus/scheduler"
)

// TestMetricsAreUpstreams: names, levels and labels are those that dashboards know.
func TestMetricsAreUpstreams(t *testing.T) {
	t.Parallel()
	s := metric.NewSet()
	if scheduler.NewMetrics(s) == nil {
		t.Fatal("there are none")
	}
	got := map[string]metric.Definition{}
	for _, d := range s.Definitions() {
		got[d.Name] = d
	}
	for name, want := range map[string]struct {
		level  metric.Level
		kind   string
		labels int
		last   float64
	}{
		"scheduler_schedule_attempts_total":               {metric.Stable, "counter", 2, 0},
		"scheduler_scheduling_attempt_duration_seconds":   {metric.Stable, "histogram", 2, 0.001 * (1 << 14)},
		"scheduler_pending_pods":                          {metric.Stable, "gauge", 1, 0},
		"scheduler_pod_scheduling_attempts":               {metric.Stable, "histogram", 0, 16},
		"scheduler_pod_scheduling_sli_duration_seconds":   {metric.Beta, "histogram", 1, (10 * time.Millisecond).Seconds() * (1 << 19)},
		"scheduler_preemption_attempts_total":             {metric.Stable, "counter", 0, 0},
		"scheduler_scheduling_algorithm_duration_seconds": {metric.Alpha, "histogram", 0, 0.001 * (1 << 14)},
	} {
		d := got[name]
		last := 0.0
		if n := len(d.Buckets); n > 0 {
			last = d.Buckets[n-1]
		}
		if d.Level != want.level || d.Type != want.kind || len(d.Labels) != want.labels || last != want.last {
			t.Errorf("%s: %+v", name, d)
		}
	}
}
