package hollow

import (
	"context"
	"net/netip"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/periplus/periplus/base"
	"github.com/periplus/periplus/client/conditions"
)

// A sink is where a reflector puts the objects of one kind. Nothing keeps them.
type sink[T runtime.Object] struct {
	seen    func(T)
	gone    func(T)
	replace func([]T)
}

var _ cache.ReflectorStore = sink[*corev1.Pod]{}

func (s sink[T]) Add(obj any) error    { s.seen(obj.(T)); return nil }
func (s sink[T]) Update(obj any) error { s.seen(obj.(T)); return nil }
func (s sink[T]) Delete(obj any) error { s.gone(obj.(T)); return nil }
func (s sink[T]) Resync() error        { return nil }

func (s sink[T]) Replace(list []any, _ string) error {
	typed := make([]T, len(list))
	for i, obj := range list {
		typed[i] = obj.(T)
	}
	s.replace(typed)
	return nil
}

// watchNodes follows the nodes of the fleet.
func (f *Fleet) watchNodes(ctx context.Context) error {
	lw := cache.NewFilteredListWatchFromClient(f.cfg.Client.CoreV1().RESTClient(), "nodes", "", func(o *metav1.ListOptions) {
		o.LabelSelector = base.HollowLabel + "=" + f.cfg.Prefix
	})
	s := sink[*corev1.Node]{seen: f.sawNode, gone: f.nodeGone, replace: func(all []*corev1.Node) {
		listed := map[string]bool{}
		for _, obj := range all {
			listed[obj.Name] = true
			f.sawNode(obj)
		}
		f.mu.Lock()
		defer f.mu.Unlock()
		for _, n := range f.nodes {
			n.present = n.present && listed[n.name]
		}
	}}
	cache.NewReflectorWithOptions(lw, &corev1.Node{}, s, cache.ReflectorOptions{Name: "hollow nodes"}).RunWithContext(ctx)
	return nil
}

// sawNode takes over what the API shows of a node.
func (f *Fleet) sawNode(obj *corev1.Node) {
	n := f.named[obj.Name]
	if n == nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	before := n.alive()
	n.uid, n.present, n.unready = obj.UID, obj.DeletionTimestamp == nil, !conditions.NodeReady(obj)
	if n.silent = obj.Annotations[Silent] == "true"; !n.alive() {
		return
	}
	if n.unready {
		f.beats.at(&n.beat, n, time.Now())
	}
	if before {
		return
	}
	f.beats.at(&n.beat, n, time.Now())
	for _, p := range f.pods {
		if p.node == n && !p.busy && p.object != nil {
			f.planLocked(p)
		}
	}
}

// nodeGone: a machine whose object is deleted has been taken away.
func (f *Fleet) nodeGone(obj *corev1.Node) {
	n := f.named[obj.Name]
	if n == nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if n.uid == obj.UID {
		n.present = false
	}
}

// alive says whether the node does anything. The fleet's mu is held.
func (n *node) alive() bool { return n.present && !n.silent }

// watchPods follows the pods that are bound to nodes, of all nodes in one watch.
func (f *Fleet) watchPods(ctx context.Context) error {
	bound := fields.OneTermNotEqualSelector("spec.nodeName", "")
	lw := cache.NewListWatchFromClient(f.cfg.Client.CoreV1().RESTClient(), "pods", metav1.NamespaceAll, bound)
	s := sink[*corev1.Pod]{seen: f.sawPod, gone: f.podGone, replace: func(all []*corev1.Pod) {
		listed := make(map[types.UID]bool, len(all))
		for _, obj := range all {
			listed[obj.UID] = true
			f.sawPod(obj)
		}
		f.mu.Lock()
		defer f.mu.Unlock()
		for _, p := range f.pods {
			if !listed[p.uid] {
				f.forgetLocked(p)
			}
		}
	}}
	cache.NewReflectorWithOptions(lw, &corev1.Pod{}, s, cache.ReflectorOptions{Name: "pods of hollow nodes"}).RunWithContext(ctx)
	return nil
}

func (f *Fleet) sawPod(obj *corev1.Pod) {
	n := f.named[obj.Spec.NodeName]
	if n == nil {
		return
	}
	key := types.NamespacedName{Namespace: obj.Namespace, Name: obj.Name}
	revision := revisionOf(obj)
	f.mu.Lock()
	defer f.mu.Unlock()
	p := f.pods[key]
	if p != nil && p.uid != obj.UID {
		f.forgetLocked(p)
		p = nil
	}
	switch {
	case p == nil:
		p = newPod(obj, n, &f.cfg, time.Now())
		if a, err := netip.ParseAddr(obj.Status.PodIP); err == nil && !obj.Spec.HostNetwork {
			p.ip = a
			n.claimLocked(a)
		}
		f.pods[key] = p
	case revision <= p.revision:
		return // an event of before the last write
	}
	p.revision, p.object = revision, obj
	if !p.busy {
		f.planLocked(p)
	}
}

func (f *Fleet) podGone(obj *corev1.Pod) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if p := f.pods[types.NamespacedName{Namespace: obj.Namespace, Name: obj.Name}]; p != nil && p.uid == obj.UID {
		f.forgetLocked(p)
	}
}

// planLocked makes a pod due when something is to be written, and lets go of its
// object when nothing is. What happens on a node that is not alive waits.
func (f *Fleet) planLocked(p *pod) {
	if p.object == nil || !p.node.alive() {
		return
	}
	what, due := p.next(&f.cfg, time.Now())
	if what != nothing {
		f.work.at(&p.entry, p, due)
		return
	}
	f.work.drop(&p.entry)
	if p.object.Status.Phase != corev1.PodRunning { // it has ended
		p.node.releaseLocked(p.ip)
		p.ip = netip.Addr{}
	}
	p.object = nil
}

func (f *Fleet) forgetLocked(p *pod) {
	f.work.drop(&p.entry)
	p.node.releaseLocked(p.ip)
	delete(f.pods, p.key)
}

func revisionOf(obj metav1.Object) uint64 {
	n, _ := strconv.ParseUint(obj.GetResourceVersion(), 10, 64) // 0 is older than all
	return n
}
