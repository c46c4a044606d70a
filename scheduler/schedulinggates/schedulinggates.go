package schedulinggates

import (
	"fmt"

	v1 "k8s.io/api/core/v1"

	"github.com/periplus/periplus/scheduler"
)

// Name is the plug-in's name.
const Name = "SchedulingGates"

type plugin struct{}

var (
	_ scheduler.PreEnqueuePlugin = plugin{}
	_ scheduler.EventPlugin      = plugin{}
)

// New makes the plug-in.
func New(*scheduler.Framework) (scheduler.Plugin, error) { return plugin{}, nil }

func (plugin) Name() string { return Name }

func (plugin) PreEnqueue(pod *v1.Pod) *scheduler.Status {
	if len(pod.Spec.SchedulingGates) == 0 {
		return nil
	}
	gates := make([]string, len(pod.Spec.SchedulingGates))
	for i := range pod.Spec.SchedulingGates {
		gates[i] = pod.Spec.SchedulingGates[i].Name
	}
	return scheduler.NewStatus(Name, scheduler.UnschedulableAndUnresolvable, fmt.Sprintf("waiting for scheduling gates: %v", gates))
}

// Events asks for the pod's own update: the queue asks PreEnqueue again then.
func (plugin) Events() []scheduler.EventHint {
	return []scheduler.EventHint{{
		Event: scheduler.ClusterEvent{Resource: scheduler.PendingPod, Action: scheduler.UpdatePodGatesEliminated},
		Worth: scheduler.SamePod,
	}}
}
