package volumebinding

import (
	"context"
	"errors"
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-helpers/storage/volume"

	"github.com/periplus/periplus/journey"
	"github.com/periplus/periplus/scheduler"
)

// bindTimeout bounds how long a pod waits for its volumes.
const bindTimeout = 10 * time.Minute

// reserved is what Reserve has found for the chosen node.
type reserved struct {
	needs
	decision
}

// Reserve takes the volumes for the pod.
func (pl *plugin) Reserve(_ context.Context, state *scheduler.CycleState, _ *scheduler.PodInfo, node string) *scheduler.Status {
	n, ok := state.Get(pl.slot).(*needs)
	if !ok || len(n.wanted) == 0 {
		return nil
	}
	object, err := pl.f.Informers.Core().V1().Nodes().Lister().Get(node)
	if err != nil {
		return scheduler.ErrorStatus(Name, err)
	}
	d, st := pl.find(n, object)
	if !st.IsSuccess() {
		return st
	}
	pl.mu.Lock()
	defer pl.mu.Unlock()
	for _, b := range d.bind {
		if by, ok := pl.taken[b.pv.Name]; ok && by != b.claim.UID {
			return noVolume
		}
	}
	for _, b := range d.bind {
		pl.taken[b.pv.Name] = b.claim.UID
	}
	state.Set(pl.slot, &reserved{*n, d})
	return nil
}

// Unreserve gives the volumes back.
func (pl *plugin) Unreserve(_ context.Context, state *scheduler.CycleState, _ *scheduler.PodInfo, _ string) {
	if r, ok := state.Get(pl.slot).(*reserved); ok {
		pl.release(r)
	}
}

func (pl *plugin) release(r *reserved) {
	pl.mu.Lock()
	defer pl.mu.Unlock()
	for _, b := range r.bind {
		if pl.taken[b.pv.Name] == b.claim.UID {
			delete(pl.taken, b.pv.Name)
		}
	}
}

// PreBind writes the decision and waits until the claims are bound.
func (pl *plugin) PreBind(ctx context.Context, state *scheduler.CycleState, p *scheduler.PodInfo, node string) *scheduler.Status {
	r, ok := state.Get(pl.slot).(*reserved)
	if !ok {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, bindTimeout)
	defer cancel()
	start := time.Now()
	err := pl.write(ctx, r, node)
	if err == nil {
		pl.decided(p.Pod, r, node, start)
		err = pl.await(ctx, p.Pod, r, node)
	}
	if err != nil {
		return scheduler.ErrorStatus(Name, fmt.Errorf("binding volumes: %w", err))
	}
	pl.f.Journey.Record(journey.Step(component, "volumes of the pod bound", "Pod", p.Pod, start).On(node))
	pl.release(r)
	return nil
}

// component is the scheduler's name in journeys.
const component = "scheduler"

// decided tells the journeys of the claims which node and which volumes were chosen.
func (pl *plugin) decided(pod *v1.Pod, r *reserved, node string, start time.Time) {
	by := "node " + node + " chosen by pod " + pod.Name
	for _, b := range r.bind {
		pl.f.Journey.Record(journey.Step(component, by, "PersistentVolumeClaim", b.claim, start).On(node).With("volume", b.pv.Name))
	}
	for _, claim := range r.provision {
		pl.f.Journey.Record(journey.Step(component, by, "PersistentVolumeClaim", claim, start).On(node).With("volume", "to be provisioned"))
	}
}

func (pl *plugin) write(ctx context.Context, r *reserved, node string) error {
	for _, b := range r.bind {
		pv, dirty, err := volume.GetBindVolumeToClaim(b.pv, b.claim)
		if err != nil {
			return err
		}
		if dirty {
			if _, err := pl.f.Client.CoreV1().PersistentVolumes().Update(ctx, pv, metav1.UpdateOptions{}); err != nil {
				return err
			}
		}
	}
	for _, claim := range r.provision {
		if claim.Annotations[volume.AnnSelectedNode] == node {
			continue
		}
		out := claim.DeepCopy()
		metav1.SetMetaDataAnnotation(&out.ObjectMeta, volume.AnnSelectedNode, node)
		if _, err := pl.f.Client.CoreV1().PersistentVolumeClaims(out.Namespace).Update(ctx, out, metav1.UpdateOptions{}); err != nil {
			return err
		}
	}
	return nil
}

// await returns when all claims are bound, or cannot be any more.
func (pl *plugin) await(ctx context.Context, pod *v1.Pod, r *reserved, node string) error {
	for {
		changed := pl.next()
		done, err := pl.check(pod, r, node)
		if done || err != nil {
			return err
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// check looks at the caches, which may be behind what was written.
func (pl *plugin) check(pod *v1.Pod, r *reserved, node string) (done bool, err error) {
	if live, err := pl.f.Informers.Core().V1().Pods().Lister().Pods(pod.Namespace).Get(pod.Name); err != nil || live.UID != pod.UID {
		return false, errors.Join(errors.New("pod does not exist any more"), err)
	}
	done = true
	for _, b := range r.bind {
		claim, err := pl.storage.Claims.PersistentVolumeClaims(b.claim.Namespace).Get(b.claim.Name)
		if err != nil {
			return false, err
		}
		done = done && scheduler.Bound(claim)
	}
	for _, before := range r.provision {
		claim, err := pl.storage.Claims.PersistentVolumeClaims(before.Namespace).Get(before.Name)
		switch {
		case err != nil:
			return false, fmt.Errorf("failed to check provisioning pvc: %w", err)
		case scheduler.Bound(claim):
			pv, err := pl.storage.Volumes.Get(claim.Spec.VolumeName)
			if err != nil {
				done = false
				continue
			}
			object, err := pl.f.Informers.Core().V1().Nodes().Lister().Get(node)
			if err != nil {
				return false, fmt.Errorf("failed to get node %q: %w", node, err)
			}
			if err := volume.CheckNodeAffinity(pv, object.Labels); err != nil {
				return false, fmt.Errorf("pv %q node affinity doesn't match node %q: %w", pv.Name, node, err)
			}
			continue
		case claim.ResourceVersion == before.ResourceVersion && before.Annotations[volume.AnnSelectedNode] != node:
			// the cache does not have our annotation yet
		case claim.Annotations[volume.AnnSelectedNode] == "":
			return false, fmt.Errorf("provisioning failed for PVC %q", claim.Name)
		case claim.Annotations[volume.AnnSelectedNode] != node:
			return false, fmt.Errorf("selectedNode annotation value %q not set to scheduled node %q", claim.Annotations[volume.AnnSelectedNode], node)
		}
		done = false
	}
	return done, nil
}

// next returns a channel that is closed at the next change of a claim or volume.
func (pl *plugin) next() <-chan struct{} {
	pl.mu.Lock()
	defer pl.mu.Unlock()
	if pl.changed == nil {
		pl.changed = make(chan struct{})
	}
	return pl.changed
}

func (pl *plugin) wake() {
	pl.mu.Lock()
	defer pl.mu.Unlock()
	if pl.changed != nil {
		close(pl.changed)
		pl.changed = nil
	}
}
