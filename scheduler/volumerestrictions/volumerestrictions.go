package volumerestrictions

import (
	"context"
	"slices"

	v1 "k8s.io/api/core/v1"

	"github.com/periplus/periplus/scheduler"
)

// Name is the plug-in's name.
const Name = "VolumeRestrictions"

type plugin struct {
	f       *scheduler.Framework
	storage *scheduler.Storage
	slot    scheduler.Slot
}

var (
	_ scheduler.PreFilterPlugin    = (*plugin)(nil)
	_ scheduler.PreFilterExtension = (*plugin)(nil)
	_ scheduler.FilterPlugin       = (*plugin)(nil)
	_ scheduler.BatchPlugin        = (*plugin)(nil)
	_ scheduler.EventPlugin        = (*plugin)(nil)
)

var inUse = scheduler.NewStatus(Name, scheduler.Unschedulable,
	"node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by another pod")

// users is how many other pods use claims that the pod wants for itself.
type users struct {
	names []string
	count int
}

// Clone implements scheduler.Cloner: preemption counts on a copy.
func (u *users) Clone() any { c := *u; return &c }

// New makes the plug-in.
func New(f *scheduler.Framework) (scheduler.Plugin, error) {
	s, err := f.Storage()
	return &plugin{f: f, storage: s, slot: f.NewSlot()}, err
}

func (*plugin) Name() string { return Name }

// PreFilter counts the users of the pod's exclusive claims, on all nodes.
func (pl *plugin) PreFilter(_ context.Context, state *scheduler.CycleState, p *scheduler.PodInfo) (*scheduler.PreFilterResult, *scheduler.Status) {
	var alone []string
	if pl.storage != nil && scheduler.HasClaims(p.Pod) {
		for i := range p.Pod.Spec.Volumes {
			name := scheduler.ClaimName(p.Pod, &p.Pod.Spec.Volumes[i])
			if name == "" {
				continue
			}
			claim, err := pl.storage.Claims.PersistentVolumeClaims(p.Pod.Namespace).Get(name)
			if err == nil && slices.Contains(claim.Spec.AccessModes, v1.ReadWriteOncePod) {
				alone = append(alone, name)
			}
		}
	}
	if len(alone) == 0 {
		return nil, scheduler.NewStatus(Name, scheduler.Skip)
	}
	u := &users{names: alone}
	for _, n := range pl.f.Snapshot().Nodes {
		for _, other := range n.Pods {
			u.count += uses(other.Pod, p.Pod.Namespace, alone)
		}
	}
	if u.count == 0 {
		return nil, scheduler.NewStatus(Name, scheduler.Skip)
	}
	state.Set(pl.slot, u)
	return nil, nil
}

// uses counts the claims of names that a pod uses.
func uses(pod *v1.Pod, namespace string, names []string) (count int) {
	if pod.Namespace != namespace {
		return 0
	}
	for i := range pod.Spec.Volumes {
		if name := scheduler.ClaimName(pod, &pod.Spec.Volumes[i]); name != "" && slices.Contains(names, name) {
			count++
		}
	}
	return count
}

// AddPod implements scheduler.PreFilterExtension.
func (pl *plugin) AddPod(state *scheduler.CycleState, pod, other *scheduler.PodInfo, _ *scheduler.NodeInfo) *scheduler.Status {
	return pl.shift(state, pod, other, 1)
}

// RemovePod implements scheduler.PreFilterExtension.
func (pl *plugin) RemovePod(state *scheduler.CycleState, pod, other *scheduler.PodInfo, _ *scheduler.NodeInfo) *scheduler.Status {
	return pl.shift(state, pod, other, -1)
}

func (pl *plugin) shift(state *scheduler.CycleState, pod, other *scheduler.PodInfo, by int) *scheduler.Status {
	if u, ok := state.Get(pl.slot).(*users); ok {
		u.count += by * uses(other.Pod, pod.Pod.Namespace, u.names)
	}
	return nil
}

// Filter refuses every node while somebody uses the claim.
func (pl *plugin) Filter(state *scheduler.CycleState, _ *scheduler.PodInfo, _ *scheduler.NodeInfo) *scheduler.Status {
	if u, ok := state.Get(pl.slot).(*users); ok && u.count > 0 {
		return inUse
	}
	return nil
}

// Same implements scheduler.BatchPlugin.
func (*plugin) Same(a, b *scheduler.PodInfo) bool {
	return !scheduler.HasClaims(a.Pod) && !scheduler.HasClaims(b.Pod)
}

// Events implements scheduler.EventPlugin.
func (*plugin) Events() []scheduler.EventHint {
	return []scheduler.EventHint{
		{
			Event: scheduler.ClusterEvent{Resource: scheduler.AssignedPod, Action: scheduler.Delete},
			Worth: func(p *scheduler.PodInfo, old, _ any) bool {
				gone := scheduler.AsPod(old)
				return gone == nil || gone.Namespace == p.Pod.Namespace && scheduler.HasClaims(gone)
			},
		},
		{Event: scheduler.ClusterEvent{Resource: scheduler.PersistentVolumeClaim, Action: scheduler.Add | scheduler.UpdateLabels}},
		{Event: scheduler.ClusterEvent{Resource: scheduler.Node, Action: scheduler.Add}},
	}
}
