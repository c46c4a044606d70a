package nodeports

import (
	"context"
	"slices"

	"github.com/periplus/periplus/scheduler"
)

// Name is the plug-in's name.
const Name = "NodePorts"

type plugin struct{}

var (
	_ scheduler.PreFilterPlugin = plugin{}
	_ scheduler.FilterPlugin    = plugin{}
	_ scheduler.BatchPlugin     = plugin{}
	_ scheduler.EventPlugin     = plugin{}
)

var taken = scheduler.NewStatus(Name, scheduler.Unschedulable, "node(s) didn't have free ports for the requested pod ports")

// New makes the plug-in.
func New(*scheduler.Framework) (scheduler.Plugin, error) { return plugin{}, nil }

func (plugin) Name() string { return Name }

func (plugin) PreFilter(_ context.Context, _ *scheduler.CycleState, p *scheduler.PodInfo) (*scheduler.PreFilterResult, *scheduler.Status) {
	if len(p.Ports) == 0 {
		return nil, scheduler.NewStatus(Name, scheduler.Skip)
	}
	return nil, nil
}

func (plugin) Filter(_ *scheduler.CycleState, p *scheduler.PodInfo, n *scheduler.NodeInfo) *scheduler.Status {
	if conflict(p.Ports, n.Ports) {
		return taken
	}
	return nil
}

func conflict(want, have []scheduler.HostPort) bool {
	for _, w := range want {
		if slices.ContainsFunc(have, w.Conflicts) {
			return true
		}
	}
	return false
}

func (plugin) Same(a, b *scheduler.PodInfo) bool { return slices.Equal(a.Ports, b.Ports) }

func (plugin) Events() []scheduler.EventHint {
	return []scheduler.EventHint{
		{
			Event: scheduler.ClusterEvent{Resource: scheduler.AssignedPod, Action: scheduler.Delete},
			Worth: func(p *scheduler.PodInfo, old, _ any) bool {
				gone := scheduler.AsPod(old)
				return gone == nil || conflict(p.Ports, scheduler.HostPorts(gone))
			},
		},
		{Event: scheduler.ClusterEvent{Resource: scheduler.Node, Action: scheduler.Add}},
	}
}
