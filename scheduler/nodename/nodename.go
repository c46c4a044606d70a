package nodename

import (
	"context"

	"github.com/periplus/periplus/scheduler"
)

// Name is the plug-in's name.
const Name = "NodeName"

type plugin struct{}

var (
	_ scheduler.PreFilterPlugin = plugin{}
	_ scheduler.FilterPlugin    = plugin{}
	_ scheduler.BatchPlugin     = plugin{}
	_ scheduler.EventPlugin     = plugin{}
)

var mismatch = scheduler.NewStatus(Name, scheduler.UnschedulableAndUnresolvable, "node(s) didn't match the requested node name")

// New makes the plug-in.
func New(*scheduler.Framework) (scheduler.Plugin, error) { return plugin{}, nil }

func (plugin) Name() string { return Name }

func (plugin) PreFilter(_ context.Context, _ *scheduler.CycleState, p *scheduler.PodInfo) (*scheduler.PreFilterResult, *scheduler.Status) {
	if p.Pod.Spec.NodeName == "" {
		return nil, scheduler.NewStatus(Name, scheduler.Skip)
	}
	return nil, nil
}

func (plugin) Filter(_ *scheduler.CycleState, p *scheduler.PodInfo, n *scheduler.NodeInfo) *scheduler.Status {
	if p.Pod.Spec.NodeName != "" && p.Pod.Spec.NodeName != n.Node.Name {
		return mismatch
	}
	return nil
}

func (plugin) Same(a, b *scheduler.PodInfo) bool { return a.Pod.Spec.NodeName == b.Pod.Spec.NodeName }

func (plugin) Events() []scheduler.EventHint {
	return []scheduler.EventHint{{
		Event: scheduler.ClusterEvent{Resource: scheduler.Node, Action: scheduler.Add},
		Worth: func(p *scheduler.PodInfo, _, new any) bool {
			n := scheduler.AsNode(new)
			return n == nil || p.Pod.Spec.NodeName == "" || p.Pod.Spec.NodeName == n.Name
		},
	}}
}
