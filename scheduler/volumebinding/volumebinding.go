package volumebinding

import (
	"context"
	"slices"
	"sync"

	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/component-helpers/storage/volume"

	"github.com/periplus/periplus/scheduler"
)

// Name is the plug-in's name.
const Name = "VolumeBinding"

// noProvisioner is the provisioner of classes whose volumes people make.
const noProvisioner = "kubernetes.io/no-provisioner"

type plugin struct {
	f       *scheduler.Framework
	storage *scheduler.Storage
	slot    scheduler.Slot

	mu      sync.Mutex           // guards what follows
	taken   map[string]types.UID // volumes reserved for claims that the caches do not show yet
	changed chan struct{}        // closed at the next change of a claim or volume; nil if nobody waits
}

var (
	_ scheduler.PreFilterPlugin = (*plugin)(nil)
	_ scheduler.FilterPlugin    = (*plugin)(nil)
	_ scheduler.ReservePlugin   = (*plugin)(nil)
	_ scheduler.PreBindPlugin   = (*plugin)(nil)
	_ scheduler.BatchPlugin     = (*plugin)(nil)
	_ scheduler.EventPlugin     = (*plugin)(nil)
)

var (
	noVolume  = scheduler.NewStatus(Name, scheduler.UnschedulableAndUnresolvable, "node(s) didn't find available persistent volumes to bind")
	elsewhere = scheduler.NewStatus(Name, scheduler.UnschedulableAndUnresolvable, "node(s) didn't match PersistentVolume's node affinity")
	gone      = scheduler.NewStatus(Name, scheduler.UnschedulableAndUnresolvable, "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)")
	immediate = scheduler.NewStatus(Name, scheduler.UnschedulableAndUnresolvable, "pod has unbound immediate PersistentVolumeClaims")
	skip      = scheduler.NewStatus(Name, scheduler.Skip)
)

// New makes the plug-in.
func New(f *scheduler.Framework) (scheduler.Plugin, error) {
	s, err := f.Storage()
	if err != nil {
		return nil, err
	}
	pl := &plugin{f: f, storage: s, slot: f.NewSlot(), taken: map[string]types.UID{}}
	if s != nil {
		s.OnClaim = pl.wake
	}
	return pl, nil
}

func (*plugin) Name() string { return Name }

// needs are the claims of a pod.
type needs struct {
	bound  []*v1.PersistentVolumeClaim
	wanted []want
}

// want is a claim that is bound when the pod has its node.
type want struct {
	claim *v1.PersistentVolumeClaim
	class *storagev1.StorageClass // nil: the claim names its volume
}

// decision is what was found for the wants on one node.
type decision struct {
	bind      []binding
	provision []*v1.PersistentVolumeClaim
}

type binding struct {
	pv    *v1.PersistentVolume
	claim *v1.PersistentVolumeClaim
}

// PreFilter sorts the pod's claims.
func (pl *plugin) PreFilter(_ context.Context, state *scheduler.CycleState, p *scheduler.PodInfo) (*scheduler.PreFilterResult, *scheduler.Status) {
	if pl.storage == nil || !scheduler.HasClaims(p.Pod) {
		return nil, skip
	}
	claims, err := pl.storage.PodClaims(p.Pod)
	if err != nil {
		return nil, scheduler.NewStatus(Name, scheduler.UnschedulableAndUnresolvable, err.Error())
	}
	n := &needs{}
	for _, c := range claims {
		switch {
		case scheduler.Bound(c):
			n.bound = append(n.bound, c)
		default:
			class := pl.storage.Late(c)
			if class == nil || c.Spec.VolumeName != "" {
				return nil, immediate
			}
			n.wanted = append(n.wanted, want{c, class})
		}
	}
	state.Set(pl.slot, n)
	return nil, nil
}

// Filter checks one node.
func (pl *plugin) Filter(state *scheduler.CycleState, _ *scheduler.PodInfo, n *scheduler.NodeInfo) *scheduler.Status {
	needs, ok := state.Get(pl.slot).(*needs)
	if !ok {
		return nil
	}
	for _, c := range needs.bound {
		pv, err := pl.storage.Volumes.Get(c.Spec.VolumeName)
		if err != nil {
			return gone
		}
		if volume.CheckNodeAffinity(pv, n.Node.Labels) != nil {
			return elsewhere
		}
	}
	_, st := pl.find(needs, n.Node)
	return st
}

// find looks for volumes on a node, or for classes that can make them there.
func (pl *plugin) find(n *needs, node *v1.Node) (decision, *scheduler.Status) {
	var d decision
	if len(n.wanted) == 0 {
		return d, nil
	}
	excluded := map[string]*v1.PersistentVolume{}
	var volumes []*v1.PersistentVolume
	// The smallest claims choose first, as upstream.
	wanted := slices.Clone(n.wanted)
	slices.SortStableFunc(wanted, func(a, b want) int {
		x, y := a.claim.Spec.Resources.Requests[v1.ResourceStorage], b.claim.Spec.Resources.Requests[v1.ResourceStorage]
		return x.Cmp(y)
	})
	for _, w := range wanted {
		if chosen, ok := w.claim.Annotations[volume.AnnSelectedNode]; ok {
			if chosen != node.Name {
				return d, noVolume // its volume is being made elsewhere
			}
			d.provision = append(d.provision, w.claim)
			continue
		}
		if volumes == nil {
			all, err := pl.storage.Volumes.List(labels.Everything())
			if err != nil {
				return d, scheduler.ErrorStatus(Name, err)
			}
			volumes = all
		}
		pv, err := volume.FindMatchingVolume(w.claim, volumes, node, pl.without(excluded, w.claim.UID), false, true)
		if err != nil {
			return d, scheduler.ErrorStatus(Name, err)
		}
		if pv != nil {
			excluded[pv.Name] = pv
			d.bind = append(d.bind, binding{pv, w.claim})
			continue
		}
		if !canProvision(w.class, node) {
			return d, noVolume
		}
		d.provision = append(d.provision, w.claim)
	}
	return d, nil
}

// without adds the volumes that other pods have reserved.
func (pl *plugin) without(excluded map[string]*v1.PersistentVolume, claim types.UID) map[string]*v1.PersistentVolume {
	pl.mu.Lock()
	defer pl.mu.Unlock()
	if len(pl.taken) == 0 {
		return excluded
	}
	out := make(map[string]*v1.PersistentVolume, len(excluded)+len(pl.taken))
	for name := range excluded {
		out[name] = nil
	}
	for name, by := range pl.taken {
		if by != claim {
			out[name] = nil
		}
	}
	return out
}

func canProvision(class *storagev1.StorageClass, node *v1.Node) bool {
	if class == nil || class.Provisioner == "" || class.Provisioner == noProvisioner {
		return false
	}
	return len(class.AllowedTopologies) == 0 || slices.ContainsFunc(class.AllowedTopologies, func(t v1.TopologySelectorTerm) bool {
		return !slices.ContainsFunc(t.MatchLabelExpressions, func(e v1.TopologySelectorLabelRequirement) bool {
			value, ok := node.Labels[e.Key]
			return !ok || !slices.Contains(e.Values, value)
		})
	})
}

// Same implements scheduler.BatchPlugin.
func (*plugin) Same(a, b *scheduler.PodInfo) bool {
	return !scheduler.HasClaims(a.Pod) && !scheduler.HasClaims(b.Pod)
}

// Events implements scheduler.EventPlugin.
func (*plugin) Events() []scheduler.EventHint {
	on := func(r scheduler.Resource, a scheduler.ActionType) scheduler.EventHint {
		return scheduler.EventHint{Event: scheduler.ClusterEvent{Resource: r, Action: a}}
	}
	claim := on(scheduler.PersistentVolumeClaim, scheduler.Add|scheduler.UpdateLabels)
	claim.Worth = func(p *scheduler.PodInfo, _, now any) bool {
		c, ok := now.(*v1.PersistentVolumeClaim)
		return ok && c.Namespace == p.Pod.Namespace && slices.ContainsFunc(p.Pod.Spec.Volumes, func(v v1.Volume) bool {
			return scheduler.ClaimName(p.Pod, &v) == c.Name
		})
	}
	return []scheduler.EventHint{
		claim,
		on(scheduler.PersistentVolume, scheduler.Add|scheduler.UpdateLabels),
		on(scheduler.StorageClass, scheduler.Add|scheduler.UpdateLabels),
		on(scheduler.CSINode, scheduler.Add|scheduler.UpdateLabels),
		on(scheduler.Node, scheduler.Add|scheduler.UpdateNodeLabel),
	}
}
