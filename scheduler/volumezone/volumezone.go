package volumezone

import (
	"context"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"

	"github.com/periplus/periplus/scheduler"
)

// Name is the plug-in's name.
const Name = "VolumeZone"

type plugin struct {
	storage *scheduler.Storage
	slot    scheduler.Slot
}

var (
	_ scheduler.PreFilterPlugin = (*plugin)(nil)
	_ scheduler.FilterPlugin    = (*plugin)(nil)
	_ scheduler.BatchPlugin     = (*plugin)(nil)
	_ scheduler.EventPlugin     = (*plugin)(nil)
)

var conflict = scheduler.NewStatus(Name, scheduler.UnschedulableAndUnresolvable, "node(s) had no available volume zone")

// keys are the labels that bind a volume to a place, with their older names.
var keys = []string{v1.LabelTopologyZone, v1.LabelTopologyRegion, v1.LabelFailureDomainBetaZone, v1.LabelFailureDomainBetaRegion}

// newer is the label that a node has in place of an older one.
var newer = map[string]string{v1.LabelFailureDomainBetaZone: v1.LabelTopologyZone, v1.LabelFailureDomainBetaRegion: v1.LabelTopologyRegion}

// place is one label of one volume.
type place struct {
	key    string
	values []string
}

// New makes the plug-in.
func New(f *scheduler.Framework) (scheduler.Plugin, error) {
	s, err := f.Storage()
	return &plugin{storage: s, slot: f.NewSlot()}, err
}

func (*plugin) Name() string { return Name }

// PreFilter collects the places of the pod's volumes.
func (pl *plugin) PreFilter(_ context.Context, state *scheduler.CycleState, p *scheduler.PodInfo) (*scheduler.PreFilterResult, *scheduler.Status) {
	var places []place
	if pl.storage != nil && scheduler.HasClaims(p.Pod) {
		for i := range p.Pod.Spec.Volumes {
			claim, err := pl.storage.Claims.PersistentVolumeClaims(p.Pod.Namespace).Get(scheduler.ClaimName(p.Pod, &p.Pod.Spec.Volumes[i]))
			if err != nil || claim.Spec.VolumeName == "" {
				continue // VolumeBinding says what is wrong
			}
			if pv, err := pl.storage.Volumes.Get(claim.Spec.VolumeName); err == nil {
				places = append(places, placesOf(pv)...)
			}
		}
	}
	if len(places) == 0 {
		return nil, scheduler.NewStatus(Name, scheduler.Skip)
	}
	state.Set(pl.slot, places)
	return nil, nil
}

func placesOf(pv *v1.PersistentVolume) (out []place) {
	for _, key := range keys {
		if value, ok := pv.Labels[key]; ok {
			out = append(out, place{key, strings.Split(value, "__")}) // several zones are joined by two underscores
		}
	}
	return out
}

// Filter compares them with the node's labels.
func (pl *plugin) Filter(state *scheduler.CycleState, _ *scheduler.PodInfo, n *scheduler.NodeInfo) *scheduler.Status {
	places, _ := state.Get(pl.slot).([]place)
	if !slices.ContainsFunc(keys, func(k string) bool { _, ok := n.Node.Labels[k]; return ok }) {
		return nil // a cluster without zones
	}
	for _, p := range places {
		value, ok := n.Node.Labels[p.key]
		if !ok {
			value, ok = n.Node.Labels[newer[p.key]]
		}
		if !ok || !slices.Contains(p.values, value) {
			return conflict
		}
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
		{Event: scheduler.ClusterEvent{Resource: scheduler.PersistentVolume, Action: scheduler.Add | scheduler.UpdateLabels}},
		{Event: scheduler.ClusterEvent{Resource: scheduler.PersistentVolumeClaim, Action: scheduler.Add | scheduler.UpdateLabels}},
		{Event: scheduler.ClusterEvent{Resource: scheduler.Node, Action: scheduler.Add | scheduler.UpdateNodeLabel}},
	}
}
