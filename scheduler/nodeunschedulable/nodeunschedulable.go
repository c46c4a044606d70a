package nodeunschedulable

import (
	v1 "k8s.io/api/core/v1"

	"github.com/periplus/periplus/scheduler"
)

// Name is the plug-in's name.
const Name = "NodeUnschedulable"

type plugin struct{}

var (
	_ scheduler.FilterPlugin = plugin{}
	_ scheduler.BatchPlugin  = plugin{}
	_ scheduler.EventPlugin  = plugin{}
)

var (
	cordoned = scheduler.NewStatus(Name, scheduler.UnschedulableAndUnresolvable, "node(s) were unschedulable")
	taint    = v1.Taint{Key: v1.TaintNodeUnschedulable, Effect: v1.TaintEffectNoSchedule}
)

// New makes the plug-in.
func New(*scheduler.Framework) (scheduler.Plugin, error) { return plugin{}, nil }

func (plugin) Name() string { return Name }

func (plugin) Filter(_ *scheduler.CycleState, p *scheduler.PodInfo, n *scheduler.NodeInfo) *scheduler.Status {
	if n.Unschedulable && !scheduler.Tolerates(p.Pod.Spec.Tolerations, &taint) {
		return cordoned
	}
	return nil
}

// Same: tolerations are compared by TaintToleration too, but a profile may lack that.
func (plugin) Same(a, b *scheduler.PodInfo) bool {
	return scheduler.Tolerates(a.Pod.Spec.Tolerations, &taint) == scheduler.Tolerates(b.Pod.Spec.Tolerations, &taint)
}

func (plugin) Events() []scheduler.EventHint {
	return []scheduler.EventHint{
		{
			Event: scheduler.ClusterEvent{Resource: scheduler.Node, Action: scheduler.Add | scheduler.UpdateNodeTaint},
			Worth: func(_ *scheduler.PodInfo, old, new any) bool {
				was, is := scheduler.AsNode(old), scheduler.AsNode(new)
				if is == nil {
					return true
				}
				return !is.Spec.Unschedulable && (was == nil || was.Spec.Unschedulable)
			},
		},
		{
			Event: scheduler.ClusterEvent{Resource: scheduler.PendingPod, Action: scheduler.UpdatePodTolerations},
			Worth: func(p *scheduler.PodInfo, old, new any) bool {
				return scheduler.SamePod(p, old, new) && scheduler.Tolerates(scheduler.AsPod(new).Spec.Tolerations, &taint)
			},
		},
	}
}
