package horizontalpodautoscaler

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/periplus/periplus/controllers"
)

var defaults = controllers.DefaultAutoscaling()

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// parsePod makes a pod of words: "use=500" thousandths (none: no figures), "request=1000",
// "pending", "failed", "deleted", "unready", "starting" (ready, but its figures are
// older), "stale" (unready since its start a day ago).
func parsePod(i int, words string) (*corev1.Pod, *figure, int64) {
	day := metav1.NewTime(noon.Add(-24 * time.Hour))
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("p%d", i)},
		Status: corev1.PodStatus{Phase: corev1.PodRunning, StartTime: &day, Conditions: []corev1.PodCondition{
			{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: day},
		}},
	}
	ready := &p.Status.Conditions[0]
	var f *figure
	request := int64(1000)
	for _, w := range strings.Fields(words) {
		name, value, _ := strings.Cut(w, "=")
		var n int64
		_, _ = fmt.Sscan(value, &n)
		switch name {
		case "use":
			f = &figure{at: noon.Add(-time.Second), window: 15 * time.Second, value: n}
		case "request":
			request = n
		case "pending":
			p.Status.Phase = corev1.PodPending
		case "failed":
			p.Status.Phase = corev1.PodFailed
		case "deleted":
			now := metav1.NewTime(noon)
			p.DeletionTimestamp = &now
		case "unready":
			start := metav1.NewTime(noon.Add(-time.Minute))
			p.Status.StartTime, ready.Status, ready.LastTransitionTime = &start, corev1.ConditionFalse, start
		case "starting":
			start := metav1.NewTime(noon.Add(-time.Minute))
			p.Status.StartTime, ready.LastTransitionTime = &start, metav1.NewTime(noon.Add(-10*time.Second))
		case "stale":
			ready.Status, ready.LastTransitionTime = corev1.ConditionFalse, metav1.NewTime(day.Add(10*time.Second))
		}
	}
	return p, f, request
}

// TestPropose covers what figures of pods make of a number of replicas.
func TestPropose(t *testing.T) {
	t.Parallel()
	both := tolerances{0.1, 0.1}
	for name, c := range map[string]struct {
		current int32
		target  int64 // percent; with amount: thousandths per pod
		amount  bool
		memory  bool
		pods    []string
		t       tolerances
		want    string // "replicas percent average", or an error
	}{
		"more":                              {3, 30, false, false, []string{"use=300", "use=500", "use=700"}, both, "5 50 500"},
		"fewer":                             {5, 50, false, false, []string{"use=100", "use=300", "use=500", "use=250", "use=250"}, both, "3 28 280"},
		"as many":                           {3, 100, false, false, []string{"use=1010", "use=1030", "use=1020"}, both, "3 102 1020"},
		"within tolerance up":               {3, 100, false, false, []string{"use=1090", "use=1090", "use=1090"}, both, "3 109 1090"},
		"tolerance of zero":                 {3, 100, false, false, []string{"use=1010", "use=1010", "use=1010"}, tolerances{}, "4 101 1010"},
		"tolerances differ":                 {3, 100, false, false, []string{"use=850", "use=850", "use=850"}, tolerances{0.2, 0.01}, "3 85 850"},
		"pending pods lessen":               {3, 30, false, false, []string{"pending", "use=500", "use=700"}, both, "4 60 600"},
		"unready pods lessen":               {3, 30, false, false, []string{"use=400 unready", "use=500", "use=700"}, both, "4 60 600"},
		"figures of the start lessen":       {3, 30, false, false, []string{"use=400 starting", "use=500", "use=700"}, both, "4 60 600"},
		"unready memory counts":             {3, 30, false, true, []string{"use=300 unready", "use=500", "use=700"}, both, "5 50 500"},
		"unready from the start, old":       {4, 30, false, false, []string{"use=100 stale", "use=500", "use=700", "use=600"}, both, "6 60 600"},
		"unready do not lessen a decrease":  {5, 50, false, false, []string{"use=100 unready", "use=300", "use=500", "use=250", "use=250"}, both, "3 32 325"},
		"ignored: failed and going":         {2, 30, false, false, []string{"use=900 failed", "use=900 deleted", "use=500", "use=700"}, both, "4 60 600"},
		"missing use nothing in an incr.":   {4, 50, false, false, []string{"", "use=950", "use=950", "use=950"}, both, "6 95 950"},
		"missing use all in a decrease":     {4, 50, false, false, []string{"", "use=100", "use=100", "use=100"}, both, "3 10 100"},
		"missing turn it round: no change":  {3, 50, false, false, []string{"", "use=300", "use=300"}, both, "3 30 300"},
		"missing use the target above 100":  {4, 150, false, false, []string{"", "use=300", "use=300", "use=300"}, both, "2 30 300"},
		"missing and unready":               {3, 50, false, false, []string{"", "unready use=100", "use=450"}, both, "3 45 450"},
		"none ready":                        {3, 30, false, false, []string{"use=100 unready", "pending"}, both, "did not receive metrics for targeted pods (pods might be unready)"},
		"no requests match":                 {3, 30, false, false, []string{"use=100 request=0"}, both, "no metrics returned matched known pods"},
		"amount: more":                      {3, 10000, true, false, []string{"use=20000", "use=10000", "use=30000"}, both, "6 0 20000"},
		"amount: fewer":                     {3, 20000, true, false, []string{"use=10000", "use=10000", "use=10000"}, both, "2 0 10000"},
		"amount: missing use the target":    {3, 20000, true, false, []string{"", "use=5000", "use=5000"}, both, "2 0 5000"},
		"amount: missing use nothing":       {3, 20000, true, false, []string{"", "use=50000", "use=40000"}, both, "5 0 45000"},
		"amount: unready do not matter":     {3, 10000, true, true, []string{"use=20000 unready", "use=10000", "use=30000"}, both, "6 0 20000"},
		"amount: pending in an increase":    {3, 10000, true, true, []string{"pending", "use=20000", "use=30000"}, both, "5 0 25000"},
		"more figures than replicas":        {2, 50, false, false, []string{"", "use=480", "use=480", "use=0"}, both, "2 32 320"},
		"too much for a number of replicas": {1, 1, false, false, []string{"use=9000000000000"}, both, "2147483647 2147483647 9000000000000"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var pods []*corev1.Pod
			m, asked := figures{}, map[string]int64{}
			for i, words := range c.pods {
				p, f, request := parsePod(i, words)
				pods = append(pods, p)
				asked[p.Name] = request
				if f != nil {
					m[p.Name] = *f
				}
			}
			g := group(pods, m, !c.memory, &defaults, noon)
			got := func() string {
				if err := g.drop(m); err != nil {
					return err.Error()
				}
				ratioOf := func(m figures) (float64, error) { return float64(average(m)) / float64(c.target), nil }
				assumed := func(string) int64 { return c.target }
				u := utilization{average: average(m)}
				if !c.amount {
					var err error
					if u, err = utilizationOf(m, asked, int32(c.target)); err != nil {
						return err.Error()
					}
					ratioOf = func(m figures) (float64, error) {
						u, err := utilizationOf(m, asked, int32(c.target))
						return u.ratio, err
					}
					assumed = func(pod string) int64 { return asked[pod] * max(100, c.target) / 100 }
				}
				n, err := propose(c.current, m, &g, c.t, ratioOf, assumed)
				if err != nil {
					return err.Error()
				}
				return fmt.Sprint(n, u.percent, u.average)
			}()
			if got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}

// TestRequests adds up what counts as a pod's request.
func TestRequests(t *testing.T) {
	t.Parallel()
	always := corev1.ContainerRestartPolicyAlways
	container := func(name, cpu string) corev1.Container {
		c := corev1.Container{Name: name}
		if cpu != "" {
			c.Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)}
		}
		return c
	}
	sidecar := container("side", "50m")
	sidecar.RestartPolicy = &always
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "web"}, Spec: corev1.PodSpec{
		InitContainers: []corev1.Container{container("init", "1"), sidecar},
		Containers:     []corev1.Container{container("app", "200m"), container("log", "100m")},
	}}
	bare := pod.DeepCopy()
	bare.Spec.Containers[1].Resources = corev1.ResourceRequirements{}
	whole := bare.DeepCopy()
	whole.Spec.Resources = &corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("2")}}
	for name, c := range map[string]struct {
		pod       *corev1.Pod
		container string
		want      string
	}{
		"containers and sidecars": {pod, "", "350"},
		"one container":           {pod, "log", "100"},
		"a sidecar":               {pod, "side", "50"},
		"none":                    {bare, "", "missing request for cpu in container log of Pod web"},
		"another one":             {bare, "app", "200"},
		"absent":                  {pod, "db", "container db not found in Pod web"},
		"of the pod":              {whole, "", "2000"},
		"container, not the pod":  {whole, "app", "200"},
	} {
		m, err := requests([]*corev1.Pod{c.pod}, c.container, corev1.ResourceCPU)
		got := fmt.Sprint(m["web"])
		if err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

// rules makes rules of "Pods 4 15, Percent 100 60".
func rules(window int32, choose autoscalingv2.ScalingPolicySelect, policies string) *autoscalingv2.HPAScalingRules {
	r := &autoscalingv2.HPAScalingRules{StabilizationWindowSeconds: &window, SelectPolicy: &choose}
	for p := range strings.SplitSeq(policies, ", ") {
		var x autoscalingv2.HPAScalingPolicy
		_, _ = fmt.Sscan(p, &x.Type, &x.Value, &x.PeriodSeconds)
		r.Policies = append(r.Policies, x)
	}
	return r
}

// TestLimits covers how far replicas may go at once.
func TestLimits(t *testing.T) {
	t.Parallel()
	most, least, never := autoscalingv2.MaxChangePolicySelect, autoscalingv2.MinChangePolicySelect, autoscalingv2.DisabledPolicySelect
	up, down := rules(0, most, "Pods 4 15, Percent 100 15"), rules(0, most, "Percent 100 15")
	ago := func(seconds int, by int32) change { return change{by, noon.Add(-time.Duration(seconds) * time.Second)} }
	for name, c := range map[string]struct {
		up, down *autoscalingv2.HPAScalingRules // nil: no behavior
		ups      []change
		downs    []change
		b        bounds
		wish     int32
		want     string
	}{
		"plain, within":                  {nil, nil, nil, nil, bounds{1, 10, 3}, 5, "5 DesiredWithinRange"},
		"plain, four at least":           {nil, nil, nil, nil, bounds{1, 10, 1}, 9, "4 ScaleUpLimit"},
		"plain, twice as many":           {nil, nil, nil, nil, bounds{1, 50, 10}, 40, "20 ScaleUpLimit"},
		"plain, too many":                {nil, nil, nil, nil, bounds{1, 10, 9}, 12, "10 TooManyReplicas"},
		"plain, too few":                 {nil, nil, nil, nil, bounds{2, 10, 9}, 1, "2 TooFewReplicas"},
		"plain, huge":                    {nil, nil, nil, nil, bounds{1, math.MaxInt32, 2_000_000_000}, math.MaxInt32, "2147483647 DesiredWithinRange"},
		"default rules, four more":       {up, down, nil, nil, bounds{1, 20, 1}, 20, "5 ScaleUpLimit"},
		"default rules, twice":           {up, down, nil, nil, bounds{1, 50, 10}, 40, "20 ScaleUpLimit"},
		"default rules, all away":        {up, down, nil, nil, bounds{1, 50, 10}, 1, "1 DesiredWithinRange"},
		"least of the policies":          {rules(0, least, "Pods 4 15, Percent 10 15"), down, nil, nil, bounds{1, 50, 10}, 40, "11 ScaleUpLimit"},
		"percent is rounded up":          {rules(0, most, "Percent 1 15"), down, nil, nil, bounds{1, 50, 10}, 40, "11 ScaleUpLimit"},
		"what was added counts":          {rules(0, most, "Pods 4 60"), down, []change{ago(30, 3), ago(61, 9)}, nil, bounds{1, 50, 10}, 40, "11 ScaleUpLimit"},
		"what was taken counts, too":     {rules(0, most, "Pods 4 60"), down, []change{ago(30, 3)}, []change{ago(40, 2)}, bounds{1, 50, 10}, 40, "13 ScaleUpLimit"},
		"more was added than allowed":    {rules(0, most, "Pods 2 60"), down, []change{ago(30, 5)}, nil, bounds{1, 50, 10}, 40, "10 ScaleUpLimit"},
		"up is off":                      {rules(0, never, "Pods 4 60"), down, nil, nil, bounds{1, 50, 10}, 40, "10 ScaleUpLimit"},
		"the maximum is nearer":          {rules(0, most, "Pods 40 60"), down, nil, nil, bounds{1, 12, 10}, 40, "12 TooManyReplicas"},
		"one a minute away":              {up, rules(0, most, "Pods 1 60"), nil, nil, bounds{1, 50, 10}, 2, "9 ScaleDownLimit"},
		"most of the policies, down":     {up, rules(0, most, "Pods 1 60, Percent 50 60"), nil, nil, bounds{1, 50, 10}, 2, "5 ScaleDownLimit"},
		"least of the policies, down":    {up, rules(0, least, "Pods 1 60, Percent 50 60"), nil, nil, bounds{1, 50, 10}, 2, "9 ScaleDownLimit"},
		"down is off":                    {up, rules(0, never, "Pods 1 60"), nil, nil, bounds{1, 50, 10}, 2, "10 ScaleDownLimit"},
		"what was taken counts, down":    {up, rules(0, most, "Pods 3 60"), nil, []change{ago(20, 2)}, bounds{1, 50, 10}, 2, "9 ScaleDownLimit"},
		"the minimum is nearer":          {up, down, nil, nil, bounds{4, 50, 10}, 2, "4 TooFewReplicas"},
		"as many: nothing to be limited": {up, down, nil, nil, bounds{1, 50, 10}, 10, "10 DesiredWithinRange"},
	} {
		h := &history{ups: c.ups, downs: c.downs}
		v := limit(c.wish, c.b)
		if c.up != nil {
			v = h.limitBy(&autoscalingv2.HorizontalPodAutoscalerBehavior{ScaleUp: c.up, ScaleDown: c.down}, c.wish, c.b, noon)
		}
		if got := fmt.Sprint(v.replicas, " ", v.reason); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

// TestStabilization lets recommendations follow each other.
func TestStabilization(t *testing.T) {
	t.Parallel()
	type step struct {
		after       time.Duration
		wish, given int32
	}
	for name, c := range map[string]struct {
		up, down int32 // seconds; negative: no behavior
		steps    []step
	}{
		"plain: five minutes":       {-1, -1, []step{{0, 8, 8}, {time.Minute, 2, 8}, {4 * time.Minute, 3, 8}, {15 * time.Second, 2, 3}, {5 * time.Minute, 2, 2}}},
		"windows of zero":           {0, 0, []step{{0, 8, 8}, {15 * time.Second, 2, 2}, {15 * time.Second, 9, 9}}},
		"up only after a minute":    {60, 0, []step{{0, 5, 5}, {30 * time.Second, 9, 5}, {29 * time.Second, 9, 5}, {2 * time.Second, 8, 8}}},
		"down only after a minute":  {0, 60, []step{{0, 5, 5}, {30 * time.Second, 2, 5}, {31 * time.Second, 3, 3}}},
		"both: stays where it is":   {60, 60, []step{{0, 5, 5}, {15 * time.Second, 9, 5}, {15 * time.Second, 2, 5}, {61 * time.Second, 2, 2}}},
		"a peak passes in a minute": {60, 60, []step{{0, 5, 5}, {15 * time.Second, 50, 5}, {15 * time.Second, 5, 5}}},
	} {
		h := &history{}
		now, current := noon, int32(5)
		h.begin(current, now.Add(-time.Hour))
		for i, s := range c.steps {
			now = now.Add(s.after)
			var got int32
			if c.up < 0 {
				got = h.stabilize(s.wish, defaults.DownscaleStabilization, now)
			} else {
				got = h.stabilizeBy(&autoscalingv2.HorizontalPodAutoscalerBehavior{
					ScaleUp: rules(c.up, "Max", "Pods 4 15"), ScaleDown: rules(c.down, "Max", "Pods 4 15"),
				}, s.wish, current, defaults.DownscaleStabilization, now).replicas
			}
			if got != s.given {
				t.Errorf("%s, step %d: %d, want %d", name, i, got, s.given)
			}
			current = got
		}
	}
}
