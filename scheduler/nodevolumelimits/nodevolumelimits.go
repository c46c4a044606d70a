package nodevolumelimits

import (
	"context"

	v1 "k8s.io/api/core/v1"

	"k8s.io/component-helpers/storage/volume"

	"github.com/periplus/periplus/scheduler"
)

// Name is the plug-in's name.
const Name = "NodeVolumeLimits"

type plugin struct{ storage *scheduler.Storage }

var (
	_ scheduler.PreFilterPlugin = plugin{}
	_ scheduler.FilterPlugin    = plugin{}
	_ scheduler.BatchPlugin     = plugin{}
	_ scheduler.EventPlugin     = plugin{}
)

var full = scheduler.NewStatus(Name, scheduler.Unschedulable, "node(s) exceed max volume count")

// New makes the plug-in.
func New(f *scheduler.Framework) (scheduler.Plugin, error) {
	s, err := f.Storage()
	return plugin{s}, err
}

func (plugin) Name() string { return Name }

// PreFilter leaves pods without volumes of drivers alone.
func (pl plugin) PreFilter(_ context.Context, _ *scheduler.CycleState, p *scheduler.PodInfo) (*scheduler.PreFilterResult, *scheduler.Status) {
	if pl.storage == nil || !scheduler.HasClaims(p.Pod) {
		return nil, scheduler.NewStatus(Name, scheduler.Skip)
	}
	return nil, nil
}

// Filter counts the volumes on the node and those that the pod would bring.
func (pl plugin) Filter(_ *scheduler.CycleState, p *scheduler.PodInfo, n *scheduler.NodeInfo) *scheduler.Status {
	node, err := pl.storage.Nodes.Get(n.Node.Name)
	if err != nil {
		return nil // nothing is known of its limits
	}
	limits := map[string]int{}
	for i := range node.Spec.Drivers {
		if a := node.Spec.Drivers[i].Allocatable; a != nil && a.Count != nil {
			limits[node.Spec.Drivers[i].Name] = int(*a.Count)
		}
	}
	if len(limits) == 0 {
		return nil
	}
	wanted := map[string]string{}
	pl.volumes(p.Pod, wanted)
	have := map[string]string{}
	for _, other := range n.Pods {
		pl.volumes(other.Pod, have)
	}
	used, more := map[string]int{}, map[string]int{}
	for _, driver := range have {
		used[driver]++
	}
	for id, driver := range wanted {
		if _, there := have[id]; !there {
			more[driver]++
		}
	}
	for driver, count := range more {
		if limit, ok := limits[driver]; ok && used[driver]+count > limit {
			return full
		}
	}
	return nil
}

// volumes adds the drivers of the pod's volumes by what identifies each volume.
func (pl plugin) volumes(pod *v1.Pod, into map[string]string) {
	for i := range pod.Spec.Volumes {
		name := scheduler.ClaimName(pod, &pod.Spec.Volumes[i])
		if name == "" {
			continue
		}
		claim, err := pl.storage.Claims.PersistentVolumeClaims(pod.Namespace).Get(name)
		if err != nil {
			continue
		}
		if pv, err := pl.storage.Volumes.Get(claim.Spec.VolumeName); err == nil {
			if pv.Spec.CSI != nil {
				into[pv.Spec.CSI.Driver+"/"+pv.Spec.CSI.VolumeHandle] = pv.Spec.CSI.Driver
			}
			continue
		}
		// Not bound yet: it will be of its class's driver.
		if class, err := pl.storage.Classes.Get(volume.GetPersistentVolumeClaimClass(claim)); err == nil {
			into[string(claim.UID)] = class.Provisioner
		}
	}
}

// Same implements scheduler.BatchPlugin.
func (plugin) Same(a, b *scheduler.PodInfo) bool {
	return !scheduler.HasClaims(a.Pod) && !scheduler.HasClaims(b.Pod)
}

// Events implements scheduler.EventPlugin.
func (plugin) Events() []scheduler.EventHint {
	return []scheduler.EventHint{
		{Event: scheduler.ClusterEvent{Resource: scheduler.AssignedPod, Action: scheduler.Delete}},
		{Event: scheduler.ClusterEvent{Resource: scheduler.CSINode, Action: scheduler.Add | scheduler.UpdateLabels}},
		{Event: scheduler.ClusterEvent{Resource: scheduler.PersistentVolumeClaim, Action: scheduler.Add | scheduler.UpdateLabels}},
		{Event: scheduler.ClusterEvent{Resource: scheduler.Node, Action: scheduler.Add}},
	}
}
