package nodeipam

import (
	"context"
	"encoding/json"
	"fmt"
	"net/netip"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	corelisters "k8s.io/client-go/listers/core/v1"

	"github.com/periplus/periplus/base"
	"github.com/periplus/periplus/controllers"
)

// Controller declares node IPAM. Its keys are nodes.
func Controller() controllers.Controller {
	nodes := []schema.GroupVersionResource{corev1.SchemeGroupVersion.WithResource("nodes")}
	return controllers.Controller{Name: "node-ipam-controller", Reads: nodes, Writes: nodes, New: build}
}

type reconciler struct {
	*controllers.Setup
	nodes corelisters.NodeLister

	mu    sync.Mutex
	sets  []*cidrSet                // one for each cluster CIDR; guarded by mu
	given map[string][]netip.Prefix // by node, also before the cache shows it; guarded by mu
}

func build(s *controllers.Setup) (controllers.Reconciler, error) {
	if len(s.Options.ClusterCIDRs) == 0 {
		return nil, fmt.Errorf("no cluster CIDR: %w", controllers.ErrNotConfigured)
	}
	r := &reconciler{Setup: s, nodes: s.Informers.Core().V1().Nodes().Lister(), given: map[string][]netip.Prefix{}}
	for _, text := range s.Options.ClusterCIDRs {
		cluster, err := netip.ParsePrefix(text)
		if err != nil {
			return nil, fmt.Errorf("cluster CIDR %q: %w", text, err)
		}
		mask := s.Options.NodeCIDRMaskIPv4
		if cluster.Addr().Is6() {
			mask = s.Options.NodeCIDRMaskIPv6
		}
		set, err := newCIDRSet(cluster, mask)
		if err != nil {
			return nil, err
		}
		r.sets = append(r.sets, set)
	}
	for _, text := range s.Options.ServiceCIDRs {
		service, err := netip.ParsePrefix(text)
		if err != nil {
			return nil, fmt.Errorf("service CIDR %q: %w", text, err)
		}
		for _, set := range r.sets {
			set.occupy(service)
		}
	}
	// The handler runs for every node that exists before the first reconciliation:
	// no range of an existing node can be given twice.
	s.Watch(s.Informers.Core().V1().Nodes().Informer(), controllers.On(r.nodeChanged))
	return r, nil
}

func (r *reconciler) nodeChanged(old, now *corev1.Node) {
	switch {
	case now == nil:
		r.release(old.Name)
	case len(now.Spec.PodCIDRs) > 0:
		r.occupy(now)
	default:
		r.Queue.Add(controllers.Key{Name: now.Name})
	}
}

func (r *reconciler) occupy(node *corev1.Node) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.given[node.Name] != nil {
		return
	}
	ranges := []netip.Prefix{}
	for _, text := range node.Spec.PodCIDRs {
		p, err := netip.ParsePrefix(text)
		if err != nil {
			r.Log.Warn("node has an invalid pod CIDR", base.KeyNode, node.Name, base.KeyError, err)
			continue
		}
		ranges = append(ranges, p)
		for _, set := range r.sets {
			set.occupy(p)
		}
	}
	r.given[node.Name] = ranges
}

func (r *reconciler) release(node string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, p := range r.given[node] {
		for _, set := range r.sets {
			set.release(p)
		}
	}
	delete(r.given, node)
}

// allocate returns the ranges for a node, the same ones however often it is asked.
func (r *reconciler) allocate(node string) ([]netip.Prefix, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if have := r.given[node]; have != nil {
		return have, nil
	}
	var out []netip.Prefix
	for _, set := range r.sets {
		p, err := set.allocate()
		if err != nil {
			for i, taken := range out {
				r.sets[i].release(taken)
			}
			return nil, fmt.Errorf("cluster CIDR %s: %w", set.cluster, err)
		}
		out = append(out, p)
	}
	r.given[node] = out
	return out, nil
}

// Reconcile gives a node without ranges its own.
func (r *reconciler) Reconcile(ctx context.Context, key controllers.Key) (time.Duration, error) {
	node, err := r.nodes.Get(key.Name)
	if apierrors.IsNotFound(err) {
		return 0, nil
	}
	if err != nil || len(node.Spec.PodCIDRs) > 0 {
		return 0, err
	}
	start := time.Now()
	ranges, err := r.allocate(node.Name)
	if err != nil {
		r.Recorder.Eventf(node, corev1.EventTypeNormal, "CIDRNotAvailable", "Node %s status is now: CIDRNotAvailable", node.Name)
		return 0, err
	}
	texts := make([]string, len(ranges))
	for i, p := range ranges {
		texts[i] = p.String()
	}
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": node.UID},
		"spec":     map[string]any{"podCIDR": texts[0], "podCIDRs": texts},
	})
	if err != nil {
		return 0, err
	}
	_, err = r.Client.CoreV1().Nodes().Patch(ctx, node.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{})
	switch {
	case apierrors.IsNotFound(err), apierrors.IsConflict(err):
		r.release(node.Name) // another node of this name will ask again
		return 0, nil
	case err != nil:
		r.Recorder.Eventf(node, corev1.EventTypeNormal, "CIDRAssignmentFailed", "Node %s status is now: CIDRAssignmentFailed", node.Name)
		return 0, err
	}
	r.Span("pod range "+texts[0]+" given to node", "Node", node, start)
	return 0, nil
}
