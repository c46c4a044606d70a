package all_test

import (
	"maps"
	"testing"

	v1 "k8s.io/api/core/v1"

	"github.com/periplus/periplus/scheduler"
	"github.com/periplus/periplus/scheduler/all"
	"github.com/periplus/periplus/scheduler/imagelocality"
	"github.com/periplus/periplus/scheduler/nodeaffinity"
	"github.com/periplus/periplus/scheduler/nodename"
	"github.com/periplus/periplus/scheduler/nodeports"
	"github.com/periplus/periplus/scheduler/noderesources"
	"github.com/periplus/periplus/scheduler/nodeunschedulable"
	st "github.com/periplus/periplus/scheduler/schedulertest"
	"github.com/periplus/periplus/scheduler/tainttoleration"
)

type (
	pod    = func(*v1.Pod)
	node   = func(*v1.Node)
	scores = map[string]int64
	says   = map[string]string
)

func taint(key, value string, effect v1.TaintEffect) node {
	return func(n *v1.Node) {
		n.Spec.Taints = append(n.Spec.Taints, v1.Taint{Key: key, Value: value, Effect: effect})
	}
}

func label(key, value string) node { return func(n *v1.Node) { n.Labels[key] = value } }

func tolerate(t v1.Toleration) pod {
	return func(p *v1.Pod) { p.Spec.Tolerations = append(p.Spec.Tolerations, t) }
}

func port(ip string, number int32) pod {
	return func(p *v1.Pod) {
		p.Spec.Containers[0].Ports = append(p.Spec.Containers[0].Ports, v1.ContainerPort{HostIP: ip, HostPort: number, Protocol: v1.ProtocolTCP})
	}
}

func image(name string, mb int64) node {
	return func(n *v1.Node) {
		n.Status.Images = append(n.Status.Images, v1.ContainerImage{Names: []string{name}, SizeBytes: mb << 20})
	}
}

func required(requirements ...v1.NodeSelectorRequirement) pod {
	return func(p *v1.Pod) {
		p.Spec.Affinity = &v1.Affinity{NodeAffinity: &v1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &v1.NodeSelector{
			NodeSelectorTerms: []v1.NodeSelectorTerm{{MatchExpressions: requirements}}}}}
	}
}

func fields(names ...string) pod {
	return func(p *v1.Pod) {
		var terms []v1.NodeSelectorTerm
		for _, n := range names {
			terms = append(terms, v1.NodeSelectorTerm{MatchFields: []v1.NodeSelectorRequirement{
				{Key: "metadata.name", Operator: v1.NodeSelectorOpIn, Values: []string{n}}}})
		}
		p.Spec.Affinity = &v1.Affinity{NodeAffinity: &v1.NodeAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: &v1.NodeSelector{NodeSelectorTerms: terms}}}
	}
}

func preferred(weight int32, key, value string) pod {
	return func(p *v1.Pod) {
		if p.Spec.Affinity == nil {
			p.Spec.Affinity = &v1.Affinity{NodeAffinity: &v1.NodeAffinity{}}
		}
		a := p.Spec.Affinity.NodeAffinity
		a.PreferredDuringSchedulingIgnoredDuringExecution = append(a.PreferredDuringSchedulingIgnoredDuringExecution,
			v1.PreferredSchedulingTerm{Weight: weight, Preference: v1.NodeSelectorTerm{MatchExpressions: []v1.NodeSelectorRequirement{
				{Key: key, Operator: v1.NodeSelectorOpIn, Values: []string{value}}}}})
	}
}

func n(name string, changes ...any) *v1.Node {
	var pairs []string
	var after []node
	for _, c := range changes {
		switch c := c.(type) {
		case string:
			pairs = append(pairs, c)
		case node:
			after = append(after, c)
		}
	}
	out := st.Node(name, pairs...)
	for _, c := range after {
		c(out)
	}
	return out
}

func p(changes ...any) *v1.Pod {
	var pairs []string
	var after []pod
	for _, c := range changes {
		switch c := c.(type) {
		case string:
			pairs = append(pairs, c)
		case pod:
			after = append(after, c)
		}
	}
	out := st.Pod("p", pairs...)
	for _, c := range after {
		c(out)
	}
	return out
}

// TestPlugins shows what each plug-in alone says of each node, and the scores that it gives.
func TestPlugins(t *testing.T) {
	t.Parallel()
	const no, never = "Unschedulable: ", "UnschedulableAndUnresolvable: "
	fit, affinity := noderesources.NewFit(noderesources.FitArgs{}), nodeaffinity.New(nodeaffinity.Args{})
	for _, c := range []struct {
		name     string
		plugin   scheduler.Factory
		pod      *v1.Pod
		nodes    []*v1.Node
		pods     []*v1.Pod
		rejected string
		verdicts says
		scores   scores // nil: not compared
	}{
		// NodeResourcesFit
		{name: "fit: what is left counts", plugin: fit, pod: p("cpu", "1", "memory", "1Gi"),
			nodes: []*v1.Node{n("a", "cpu", "2"), n("b", "cpu", "2")}, pods: []*v1.Pod{st.On("a", st.Pod("x", "cpu", "1500m"))},
			verdicts: says{"a": no + "Insufficient cpu"}},
		{name: "fit: all shortages are named", plugin: fit, pod: p("cpu", "5", "memory", "9Gi", "ephemeral-storage", "1Gi"),
			nodes: []*v1.Node{n("a")}, verdicts: says{"a": never + "Insufficient cpu, Insufficient memory, Insufficient ephemeral-storage"}},
		{name: "fit: extended resources", plugin: fit, pod: p("example.com/gpu", "1"),
			nodes:    []*v1.Node{n("a"), n("b", "example.com/gpu", "2"), n("c", "example.com/gpu", "1")},
			pods:     []*v1.Pod{st.On("c", st.Pod("x", "example.com/gpu", "1"))},
			verdicts: says{"a": never + "Insufficient example.com/gpu", "c": no + "Insufficient example.com/gpu"}},
		{name: "fit: number of pods", plugin: fit, pod: p(), nodes: []*v1.Node{n("a", "pods", "1")},
			pods: []*v1.Pod{st.On("a", st.Pod("x"))}, verdicts: says{"a": no + "Too many pods"}},
		{name: "fit: ignored resources", pod: p("example.com/gpu", "1", "other.com/fpga", "1"), nodes: []*v1.Node{n("a")},
			plugin: noderesources.NewFit(noderesources.FitArgs{IgnoredResourceGroups: []string{"example.com"}, IgnoredResources: []string{"other.com/fpga"}})},
		{name: "fit: least allocated", plugin: fit, pod: p("cpu", "1", "memory", "2Gi"),
			nodes: []*v1.Node{n("a"), n("b")}, pods: []*v1.Pod{st.On("b", st.Pod("x", "cpu", "1", "memory", "4Gi"))},
			scores: scores{"a": 75, "b": (50 + 25) / 2}},
		{name: "fit: least allocated counts defaults", plugin: fit, pod: p(),
			nodes:  []*v1.Node{n("a", "cpu", "1", "memory", "400Mi")},
			scores: scores{"a": (90 + 50) / 2}},
		{name: "fit: most allocated", pod: p("cpu", "1", "memory", "2Gi"), nodes: []*v1.Node{n("a"), n("b", "cpu", "2")},
			plugin: noderesources.NewFit(noderesources.FitArgs{Strategy: noderesources.Strategy{Type: noderesources.MostAllocated}}),
			scores: scores{"a": 25, "b": (50 + 25) / 2}},
		{name: "fit: requested to capacity ratio", pod: p("cpu", "1", "memory", "2Gi"), nodes: []*v1.Node{n("a"), n("b", "cpu", "2")},
			plugin: noderesources.NewFit(noderesources.FitArgs{Strategy: noderesources.Strategy{Type: noderesources.RequestedToCapacityRatio,
				Shape: []noderesources.Point{{Utilization: 0, Score: 0}, {Utilization: 100, Score: 10}}}}),
			scores: scores{"a": 25, "b": 38}},

		// NodeResourcesBalancedAllocation
		{name: "balanced: better and worse", plugin: noderesources.NewBalanced, pod: p("cpu", "2"),
			nodes: []*v1.Node{n("a"), n("b")}, pods: []*v1.Pod{st.On("b", st.Pod("x", "memory", "4Gi"))},
			scores: scores{"a": 62, "b": 87}}, // 50 + (50 + 75 - 100)/2, 50 + (50 + 100 - 75)/2
		{name: "balanced: no requests", plugin: noderesources.NewBalanced, pod: p(), nodes: []*v1.Node{n("a")}, scores: scores{"a": 0}},

		// NodeName
		{name: "name", plugin: nodename.New, pod: st.On("b", p()), nodes: []*v1.Node{n("a"), n("b")},
			verdicts: says{"a": never + "node(s) didn't match the requested node name"}},

		// NodeUnschedulable
		{name: "cordoned", plugin: nodeunschedulable.New, pod: p(),
			nodes:    []*v1.Node{n("a", func(n *v1.Node) { n.Spec.Unschedulable = true }), n("b")},
			verdicts: says{"a": never + "node(s) were unschedulable"}},
		{name: "cordoned, tolerated", plugin: nodeunschedulable.New,
			pod:   p(tolerate(v1.Toleration{Key: v1.TaintNodeUnschedulable, Operator: v1.TolerationOpExists})),
			nodes: []*v1.Node{n("a", func(n *v1.Node) { n.Spec.Unschedulable = true })}},

		// TaintToleration
		{name: "taints", plugin: tainttoleration.New, pod: p(tolerate(v1.Toleration{Key: "k", Value: "v"})),
			nodes: []*v1.Node{n("a", taint("k", "v", v1.TaintEffectNoSchedule)), n("b", taint("k", "other", v1.TaintEffectNoExecute)),
				n("c", taint("k", "other", v1.TaintEffectPreferNoSchedule))},
			verdicts: says{"b": never + "node(s) had untolerated taint(s)"}},
		{name: "taints: preferences", plugin: tainttoleration.New, pod: p(tolerate(v1.Toleration{Key: "k1", Operator: v1.TolerationOpExists})),
			nodes: []*v1.Node{n("a"), n("b", taint("k1", "", v1.TaintEffectPreferNoSchedule), taint("k2", "", v1.TaintEffectPreferNoSchedule)),
				n("c", taint("k2", "", v1.TaintEffectPreferNoSchedule), taint("k3", "", v1.TaintEffectPreferNoSchedule))},
			scores: scores{"a": 100, "b": 50, "c": 0}},

		// NodeAffinity
		{name: "selector", plugin: affinity, pod: p(func(p *v1.Pod) { p.Spec.NodeSelector = map[string]string{"disk": "ssd"} }),
			nodes:    []*v1.Node{n("a", label("disk", "ssd")), n("b", label("disk", "hdd")), n("c")},
			verdicts: says{"b": never + "node(s) didn't match Pod's node affinity/selector", "c": never + "node(s) didn't match Pod's node affinity/selector"}},
		{name: "affinity: operators", plugin: affinity,
			pod: p(required(v1.NodeSelectorRequirement{Key: "gen", Operator: v1.NodeSelectorOpGt, Values: []string{"3"}},
				v1.NodeSelectorRequirement{Key: "old", Operator: v1.NodeSelectorOpDoesNotExist})),
			nodes:    []*v1.Node{n("a", label("gen", "4")), n("b", label("gen", "4"), label("old", "")), n("c", label("gen", "3"))},
			verdicts: says{"b": never + "node(s) didn't match Pod's node affinity/selector", "c": never + "node(s) didn't match Pod's node affinity/selector"}},
		{name: "affinity: by name, as DaemonSets do", plugin: affinity, pod: p(fields("b")), nodes: []*v1.Node{n("a"), n("b")},
			verdicts: says{"a": never + "node(s) didn't satisfy plugin(s) [NodeAffinity]"}},
		{name: "affinity: terms are alternatives", plugin: affinity, pod: p(fields("a", "b")), nodes: []*v1.Node{n("a"), n("b"), n("c")},
			verdicts: says{"c": never + "node(s) didn't satisfy plugin(s) [NodeAffinity]"}},
		{name: "affinity: preferences", plugin: affinity, pod: p(preferred(10, "x", "1"), preferred(30, "y", "1")),
			nodes:  []*v1.Node{n("a", label("x", "1")), n("b", label("x", "1"), label("y", "1")), n("c")},
			scores: scores{"a": 25, "b": 100, "c": 0}},
		{name: "affinity: added by the profile", pod: p(), nodes: []*v1.Node{n("a", label("pool", "batch")), n("b")},
			plugin: nodeaffinity.New(nodeaffinity.Args{AddedAffinity: &v1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &v1.NodeSelector{
				NodeSelectorTerms: []v1.NodeSelectorTerm{{MatchExpressions: []v1.NodeSelectorRequirement{{Key: "pool", Operator: v1.NodeSelectorOpExists}}}}}}}),
			verdicts: says{"b": never + "node(s) didn't match scheduler-enforced node affinity"}},

		// NodePorts
		{name: "ports", plugin: nodeports.New, pod: p(port("", 80)), nodes: []*v1.Node{n("a"), n("b"), n("c")},
			pods:     []*v1.Pod{st.On("a", st.With(st.Pod("x"), port("10.0.0.1", 80))), st.On("b", st.With(st.Pod("y"), port("", 81)))},
			verdicts: says{"a": no + "node(s) didn't have free ports for the requested pod ports"}},
		{name: "ports on other addresses", plugin: nodeports.New, pod: p(port("10.0.0.2", 80)), nodes: []*v1.Node{n("a")},
			pods: []*v1.Pod{st.On("a", st.With(st.Pod("x"), port("10.0.0.1", 80)))}},

		// ImageLocality
		{name: "images", plugin: imagelocality.New, pod: p(), scores: scores{"a": 0, "b": 48, "c": 0},
			nodes: []*v1.Node{n("a"), n("b", image("image:latest", 990)), n("c", image("image:v2", 990))}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if c.name == "images" {
				// 990 MB on one of three nodes: (990/3 - 23) / (1000 - 23)
				c.scores["b"] = (990<<20/3 - 23<<20) * 100 / (977 << 20)
			}
			r := st.Run(t, c.pod, c.nodes, c.pods, c.plugin)
			if r.Rejected != c.rejected {
				t.Errorf("rejected %q, want %q", r.Rejected, c.rejected)
			}
			if !maps.Equal(r.Verdicts, c.verdicts) {
				t.Errorf("verdicts %v, want %v", r.Verdicts, c.verdicts)
			}
			if c.scores != nil && !maps.Equal(r.Scores, c.scores) {
				t.Errorf("scores %v, want %v", r.Scores, c.scores)
			}
		})
	}
}

// TestDefaultProfile: the whole list can be made and weighs as upstream does.
func TestDefaultProfile(t *testing.T) {
	t.Parallel()
	f, err := scheduler.Simulate(scheduler.Profile{SchedulerName: scheduler.DefaultName, Plugins: all.Plugins()}, []*v1.Node{
		n("plain"), n("tainted", taint("k", "v", v1.TaintEffectPreferNoSchedule)), n("liked", label("x", "1")),
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	trial, err := f.Try(t.Context(), p("cpu", "1", "memory", "2Gi", preferred(1, "x", "1")))
	if err != nil {
		t.Fatal(err)
	}
	// fit 75 and balance 75 everywhere; taints 3 × 100 or 0; affinity 2 × 100 or 0
	want := scores{"plain": 450, "tainted": 150, "liked": 650}
	if !maps.Equal(trial.Scores, want) {
		t.Errorf("scores %v, want %v", trial.Scores, want)
	}
}
