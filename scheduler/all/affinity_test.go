package all_test

import (
	"maps"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/periplus/periplus/scheduler"
	"github.com/periplus/periplus/scheduler/interpodaffinity"
	"github.com/periplus/periplus/scheduler/podtopologyspread"
	st "github.com/periplus/periplus/scheduler/schedulertest"
)

const zone = v1.LabelTopologyZone

func app(name string) pod { return func(p *v1.Pod) { p.Labels = map[string]string{"app": name} } }

func selectApp(name string) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: map[string]string{"app": name}}
}

func near(name, key string) pod {
	return func(p *v1.Pod) {
		p.Spec.Affinity = &v1.Affinity{PodAffinity: &v1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []v1.PodAffinityTerm{
			{LabelSelector: selectApp(name), TopologyKey: key}}}}
	}
}

func far(name, key string) pod {
	return func(p *v1.Pod) {
		p.Spec.Affinity = &v1.Affinity{PodAntiAffinity: &v1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []v1.PodAffinityTerm{
			{LabelSelector: selectApp(name), TopologyKey: key}}}}
	}
}

func like(weight int32, name, key string) pod {
	return func(p *v1.Pod) {
		term := v1.WeightedPodAffinityTerm{Weight: max(weight, -weight), PodAffinityTerm: v1.PodAffinityTerm{LabelSelector: selectApp(name), TopologyKey: key}}
		if weight > 0 {
			p.Spec.Affinity = &v1.Affinity{PodAffinity: &v1.PodAffinity{PreferredDuringSchedulingIgnoredDuringExecution: []v1.WeightedPodAffinityTerm{term}}}
		} else {
			p.Spec.Affinity = &v1.Affinity{PodAntiAffinity: &v1.PodAntiAffinity{PreferredDuringSchedulingIgnoredDuringExecution: []v1.WeightedPodAffinityTerm{term}}}
		}
	}
}

func spread(key string, skew int32, action v1.UnsatisfiableConstraintAction, changes ...func(*v1.TopologySpreadConstraint)) pod {
	return func(p *v1.Pod) {
		c := v1.TopologySpreadConstraint{MaxSkew: skew, TopologyKey: key, WhenUnsatisfiable: action, LabelSelector: selectApp("web")}
		for _, f := range changes {
			f(&c)
		}
		p.Spec.TopologySpreadConstraints = append(p.Spec.TopologySpreadConstraints, c)
	}
}

// on returns a pod of an app on a node.
func on(node, name string, changes ...pod) *v1.Pod {
	out := st.On(node, st.With(st.Pod(node+name), app(name)))
	for _, c := range changes {
		c(out)
	}
	return out
}

// zones are a and b in zone 1, c in zone 2, and d without zone.
func zones() []*v1.Node {
	return []*v1.Node{n("a", label(zone, "1")), n("b", label(zone, "1")), n("c", label(zone, "2")), n("d")}
}

func TestAffinityAndSpread(t *testing.T) {
	t.Parallel()
	const (
		noAffinity = "UnschedulableAndUnresolvable: node(s) didn't match pod affinity rules"
		anti       = "Unschedulable: node(s) didn't match pod anti-affinity rules"
		theirs     = "Unschedulable: node(s) didn't satisfy existing pods anti-affinity rules"
		skewed     = "Unschedulable: node(s) didn't match pod topology spread constraints"
		noLabel    = "UnschedulableAndUnresolvable: node(s) didn't match pod topology spread constraints (missing required label)"
	)
	affinity := interpodaffinity.New(interpodaffinity.Args{})
	minDomains := func(n int32) func(*v1.TopologySpreadConstraint) {
		return func(c *v1.TopologySpreadConstraint) { c.MinDomains = &n }
	}
	for _, c := range []struct {
		name     string
		plugin   scheduler.Factory
		pod      *v1.Pod
		pods     []*v1.Pod
		verdicts says
		scores   scores
	}{
		{name: "affinity to a zone", plugin: affinity, pod: p(near("db", zone)), pods: []*v1.Pod{on("a", "db")},
			verdicts: says{"c": noAffinity, "d": noAffinity}},
		{name: "affinity to nothing", plugin: affinity, pod: p(near("db", zone)),
			verdicts: says{"a": noAffinity, "b": noAffinity, "c": noAffinity, "d": noAffinity}},
		{name: "the first of a group", plugin: affinity, pod: p(app("db"), near("db", zone)), verdicts: says{"d": noAffinity}},
		{name: "affinity in another namespace", plugin: affinity, pod: p(near("db", v1.LabelHostname)),
			pods:     []*v1.Pod{on("a", "db", func(p *v1.Pod) { p.Namespace = "other" })},
			verdicts: says{"a": noAffinity, "b": noAffinity, "c": noAffinity, "d": noAffinity}},
		{name: "anti-affinity to a zone", plugin: affinity, pod: p(far("db", zone)), pods: []*v1.Pod{on("a", "db")},
			verdicts: says{"a": anti, "b": anti}},
		{name: "anti-affinity to nodes", plugin: affinity, pod: p(app("web"), far("web", v1.LabelHostname)), pods: []*v1.Pod{on("a", "web"), on("d", "web")},
			verdicts: says{"a": anti, "d": anti}},
		{name: "anti-affinity of others", plugin: affinity, pod: p(app("web")), pods: []*v1.Pod{on("c", "db", far("web", zone))},
			verdicts: says{"c": theirs}},
		{name: "preferred", plugin: affinity, pod: p(like(10, "db", zone)), pods: []*v1.Pod{on("a", "db")},
			scores: scores{"a": 100, "b": 100, "c": 0, "d": 0}},
		{name: "not preferred", plugin: affinity, pod: p(like(-10, "db", zone)), pods: []*v1.Pod{on("a", "db")},
			scores: scores{"a": 0, "b": 0, "c": 100, "d": 100}},
		{name: "preferred by others", plugin: affinity, pod: p(app("web")), pods: []*v1.Pod{on("a", "x", like(10, "web", v1.LabelHostname)), on("c", "y", near("web", zone))},
			scores: scores{"a": 100, "b": 0, "c": 10, "d": 0}},

		{name: "spread over zones", plugin: podtopologyspread.New, pod: p(app("web"), spread(zone, 1, v1.DoNotSchedule)), pods: []*v1.Pod{on("a", "web")},
			verdicts: says{"a": skewed, "b": skewed, "d": noLabel}},
		{name: "spread with a greater skew", plugin: podtopologyspread.New, pod: p(app("web"), spread(zone, 2, v1.DoNotSchedule)), pods: []*v1.Pod{on("a", "web")},
			verdicts: says{"d": noLabel}},
		{name: "spread over at least three zones", plugin: podtopologyspread.New, pod: p(app("web"), spread(zone, 1, v1.DoNotSchedule, minDomains(3))),
			pods: []*v1.Pod{on("a", "web"), on("c", "web")}, verdicts: says{"a": skewed, "b": skewed, "c": skewed, "d": noLabel}},
		{name: "spread if possible", plugin: podtopologyspread.New, pod: p(app("web"), spread(v1.LabelHostname, 1, v1.ScheduleAnyway)),
			pods: []*v1.Pod{on("a", "web"), on("b", "other")}, scores: scores{"a": 0, "b": 100, "c": 100, "d": 100}},
		{name: "spread over zones if possible", plugin: podtopologyspread.New, pod: p(app("web"), spread(zone, 1, v1.ScheduleAnyway)),
			pods: []*v1.Pod{on("a", "web")}, scores: scores{"a": 0, "b": 0, "c": 100, "d": 0}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := st.Run(t, c.pod, zones(), c.pods, c.plugin)
			if !maps.Equal(r.Verdicts, c.verdicts) {
				t.Errorf("verdicts %v, want %v", r.Verdicts, c.verdicts)
			}
			if c.scores != nil && !maps.Equal(r.Scores, c.scores) {
				t.Errorf("scores %v, want %v", r.Scores, c.scores)
			}
		})
	}
}
