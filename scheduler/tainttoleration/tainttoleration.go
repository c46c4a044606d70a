package tainttoleration

import (
	"context"
	"slices"

	v1 "k8s.io/api/core/v1"

	"github.com/periplus/periplus/scheduler"
)

// Name is the plug-in's name.
const Name = "TaintToleration"

type plugin struct{ f *scheduler.Framework }

var (
	_ scheduler.FilterPlugin    = plugin{}
	_ scheduler.PreScorePlugin  = plugin{}
	_ scheduler.NormalizePlugin = plugin{}
	_ scheduler.BatchPlugin     = plugin{}
	_ scheduler.EventPlugin     = plugin{}
)

var untolerated = scheduler.NewStatus(Name, scheduler.UnschedulableAndUnresolvable, "node(s) had untolerated taint(s)")

// New makes the plug-in.
func New(f *scheduler.Framework) (scheduler.Plugin, error) { return plugin{f}, nil }

func (plugin) Name() string { return Name }

func (plugin) Filter(_ *scheduler.CycleState, p *scheduler.PodInfo, n *scheduler.NodeInfo) *scheduler.Status {
	if n.NoScheduleTaints && !tolerated(p.Pod, n.Node) {
		return untolerated
	}
	return nil
}

// tolerated reports whether pod tolerates all taints that keep pods away.
func tolerated(pod *v1.Pod, node *v1.Node) bool {
	for i := range node.Spec.Taints {
		t := &node.Spec.Taints[i]
		if t.Effect != v1.TaintEffectPreferNoSchedule && !scheduler.Tolerates(pod.Spec.Tolerations, t) {
			return false
		}
	}
	return true
}

// PreScore skips when all nodes would get the same score.
func (pl plugin) PreScore(_ context.Context, _ *scheduler.CycleState, _ *scheduler.PodInfo, _ []*scheduler.NodeInfo) *scheduler.Status {
	if pl.f.Snapshot().PreferTaints == 0 {
		return scheduler.NewStatus(Name, scheduler.Skip)
	}
	return nil
}

// Score counts the taints with effect PreferNoSchedule that the pod does not tolerate.
func (plugin) Score(_ *scheduler.CycleState, p *scheduler.PodInfo, n *scheduler.NodeInfo) (int64, *scheduler.Status) {
	if !n.PreferTaints {
		return 0, nil
	}
	var count int64
	for i := range n.Node.Spec.Taints {
		t := &n.Node.Spec.Taints[i]
		if t.Effect == v1.TaintEffectPreferNoSchedule && !scheduler.Tolerates(p.Pod.Spec.Tolerations, t) {
			count++
		}
	}
	return count, nil
}

func (plugin) Normalize(_ *scheduler.CycleState, _ *scheduler.PodInfo, _ []*scheduler.NodeInfo, scores []int64) *scheduler.Status {
	scheduler.Normalize(scores, true)
	return nil
}

func (plugin) Same(a, b *scheduler.PodInfo) bool {
	return slices.EqualFunc(a.Pod.Spec.Tolerations, b.Pod.Spec.Tolerations, func(x, y v1.Toleration) bool {
		return x.Key == y.Key && x.Operator == y.Operator && x.Value == y.Value && x.Effect == y.Effect
	})
}

func (plugin) Events() []scheduler.EventHint {
	return []scheduler.EventHint{
		{
			Event: scheduler.ClusterEvent{Resource: scheduler.Node, Action: scheduler.Add | scheduler.UpdateNodeTaint},
			Worth: func(p *scheduler.PodInfo, old, new any) bool {
				was, is := scheduler.AsNode(old), scheduler.AsNode(new)
				if is == nil {
					return true
				}
				return tolerated(p.Pod, is) && (was == nil || !tolerated(p.Pod, was))
			},
		},
		{
			Event: scheduler.ClusterEvent{Resource: scheduler.PendingPod, Action: scheduler.UpdatePodTolerations},
			Worth: scheduler.SamePod,
		},
	}
}
