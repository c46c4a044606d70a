package metrics

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// TestParse reads what kubelets write, and does not trip over what they might.
func TestParse(t *testing.T) {
	t.Parallel()
	now := time.UnixMilli(1_700_000_000_000)
	got, err := parse(strings.NewReader(`# HELP container_cpu_usage_seconds_total [STABLE] text
# TYPE container_cpu_usage_seconds_total counter
container_cpu_usage_seconds_total{container="a",namespace="n",pod="p"} 4.710169 1633253812125
container_cpu_usage_seconds_total{container="odd \"}\\\n",namespace="n",pod="p",} 1e-3
container_memory_working_set_bytes{container="a",namespace="n",pod="p"} 9.253027e+07 1633253812125
container_start_time_seconds{container="a",namespace="n",pod="p"} 1.6332528e+09
container_cpu_usage_seconds_total{container="b",namespace="n",pod="q"} 0 1633253812125
container_memory_working_set_bytes{container="b",namespace="n",pod="q"} 0 1633253812125
container_swap_usage_bytes{container="a",namespace="n",pod="p"} 5
container_cpu_usage_seconds_total{container="c" 5
container_cpu_usage_seconds_total{container=c} 5
container_cpu_usage_seconds_total{container="d",namespace="n",pod="p"} NaN
container_cpu_usage_seconds_total{container="d",namespace="n",pod="p"} -1
container_cpu_usage_seconds_total{container="d",namespace="n",pod="p"} 1 yesterday
container_cpu_usage_seconds_total{container="d",namespace="n",pod="p"}
node_cpu_usage_seconds_total 357.35491 1633253809720
node_memory_working_set_bytes 1.616273408e+09 1633253809720
node_cpu
resource_scrape_error 0
`), now)
	if err != nil {
		t.Fatal(err)
	}
	if got.node != (point{at: time.UnixMilli(1633253809720), cpu: 357354910000, memory: 1616273408}) {
		t.Errorf("node %+v", got.node)
	}
	p := got.pods[types.NamespacedName{Namespace: "n", Name: "p"}]
	if len(got.pods) != 1 || len(p) != 2 || p["a"] != (point{at: time.UnixMilli(1633253812125), start: time.Unix(1633252800, 0), cpu: 4710169000, memory: 92530270}) ||
		p["odd \"}\\\n"] != (point{at: now, cpu: 1_000_000}) {
		t.Errorf("pods %+v", got.pods)
	}
	if _, err := parse(strings.NewReader("resource_scrape_error 1\n"), now); err == nil {
		t.Error("an answer without figures is taken")
	}
}

func FuzzParse(f *testing.F) {
	f.Add("node_cpu_usage_seconds_total 357.35491 1633253809720")
	f.Add(`container_cpu_usage_seconds_total{container="odd \"}\\\n",namespace="n",pod="p",} 1e-3`)
	f.Add("container_start_time_seconds{} 1e300")
	f.Fuzz(func(t *testing.T, text string) {
		r, err := parse(strings.NewReader(text), time.Unix(1, 0))
		if err == nil && r.node.at.IsZero() {
			t.Error("no time")
		}
	})
}
