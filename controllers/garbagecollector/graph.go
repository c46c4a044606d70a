package garbagecollector

import (
	"slices"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/periplus/periplus/client/objects"
)

// absentLimit bounds the memory of UIDs that are known to be gone.
const absentLimit = 1024

// A node is one object. A virtual node stands for an owner that nobody has
// reported yet.
type node struct {
	resource   *objects.Resource // nil for a virtual node
	namespace  string
	name       string
	uid        types.UID
	owners     []metav1.OwnerReference
	dependents map[*node]struct{}
	deleting   bool
	foreground bool // finalizer foregroundDeletion
	orphan     bool // finalizer orphan
}

func (n *node) virtual() bool { return n.resource == nil }

// graph is the ownership of all objects. It decides nothing: it tells which nodes
// a change concerns.
type graph struct {
	mu     sync.Mutex // guards everything
	nodes  map[types.UID]*node
	kinds  map[schema.GroupKind]*objects.Resource
	absent map[absence]bool
	synced bool
}

// An absence is the knowledge that a UID is not found in a namespace, or
// anywhere. A wrong reference proves nothing about other namespaces.
type absence struct {
	uid       types.UID
	namespace string
}

const anywhere = "*"

func newGraph() *graph {
	return &graph{
		nodes:  map[types.UID]*node{},
		kinds:  map[schema.GroupKind]*objects.Resource{},
		absent: map[absence]bool{},
	}
}

// upsert takes an object's state and returns the UIDs that it concerns.
func (g *graph) upsert(r objects.Resource, o metav1.Object) []types.UID {
	g.mu.Lock()
	defer g.mu.Unlock()
	uid := o.GetUID()
	owners := o.GetOwnerReferences()
	n := g.nodes[uid]
	if n != nil && !n.virtual() && sameOwners(n.owners, owners) && n.deleting == (o.GetDeletionTimestamp() != nil) &&
		(!n.deleting || n.foreground == has(o, metav1.FinalizerDeleteDependents) && n.orphan == has(o, metav1.FinalizerOrphanDependents)) {
		return nil // the usual case: nothing that ownership depends on
	}
	var concerned []types.UID
	if n == nil {
		n = &node{uid: uid}
		g.nodes[uid] = n
	}
	n.resource, n.namespace, n.name = g.resourceLocked(r), o.GetNamespace(), o.GetName()
	if !sameOwners(n.owners, owners) {
		concerned = append(concerned, g.relinkLocked(n, owners)...)
	}
	n.deleting = o.GetDeletionTimestamp() != nil
	n.foreground = n.deleting && has(o, metav1.FinalizerDeleteDependents)
	n.orphan = n.deleting && has(o, metav1.FinalizerOrphanDependents)
	if n.foreground || n.orphan {
		concerned = append(concerned, uid)
	}
	if n.foreground {
		for d := range n.dependents {
			concerned = append(concerned, d.uid)
		}
	}
	return concerned
}

// relinkLocked gives n new owners. It concerns owners that wait for n, and n itself
// when an owner is unknown, going, or was dropped.
func (g *graph) relinkLocked(n *node, owners []metav1.OwnerReference) []types.UID {
	var concerned []types.UID
	for _, ref := range n.owners {
		if owner := g.nodes[ref.UID]; owner != nil {
			delete(owner.dependents, n)
			if owner.foreground {
				concerned = append(concerned, owner.uid)
			}
			g.dropVirtualLocked(owner)
		}
	}
	dropped := len(n.owners) > 0
	n.owners = slices.Clone(owners)
	for _, ref := range owners {
		owner := g.nodes[ref.UID]
		if owner == nil {
			owner = &node{uid: ref.UID, name: ref.Name, namespace: n.namespace}
			g.nodes[ref.UID] = owner
		}
		if owner.virtual() {
			concerned = append(concerned, n.uid) // gone, or not seen yet: n is to be judged
		}
		if owner.dependents == nil {
			owner.dependents = map[*node]struct{}{}
		}
		owner.dependents[n] = struct{}{}
		if owner.foreground || owner.orphan {
			concerned = append(concerned, n.uid, owner.uid)
		}
	}
	if dropped && len(owners) > 0 {
		concerned = append(concerned, n.uid)
	}
	return concerned
}

func (g *graph) dropVirtualLocked(n *node) {
	if n.virtual() && len(n.dependents) == 0 {
		delete(g.nodes, n.uid)
	}
}

// gone takes an object out and returns the UIDs that this concerns: its
// dependents, and owners that waited for it.
func (g *graph) gone(uid types.UID) []types.UID {
	g.mu.Lock()
	defer g.mu.Unlock()
	n := g.nodes[uid]
	if n == nil {
		return nil
	}
	var concerned []types.UID
	for _, ref := range n.owners {
		if owner := g.nodes[ref.UID]; owner != nil {
			delete(owner.dependents, n)
			if owner.foreground {
				concerned = append(concerned, owner.uid)
			}
			g.dropVirtualLocked(owner)
		}
	}
	delete(g.nodes, uid)
	if len(n.dependents) > 0 {
		g.rememberAbsentLocked(absence{uid, anywhere})
		// The dependents stay linked to a virtual node, should the owner be looked
		// up again, and are judged one by one.
		ghost := &node{uid: uid, name: n.name, namespace: n.namespace, dependents: n.dependents}
		g.nodes[uid] = ghost
		for d := range n.dependents {
			concerned = append(concerned, d.uid)
		}
	}
	return concerned
}

func (g *graph) rememberAbsentLocked(a absence) {
	if len(g.absent) >= absentLimit {
		for old := range g.absent { // any one: a forgotten UID only costs a look-up
			delete(g.absent, old)
			break
		}
	}
	g.absent[a] = true
}

func (g *graph) resourceLocked(r objects.Resource) *objects.Resource {
	gk := schema.GroupKind{Group: r.GVR.Group, Kind: r.Kind}
	if known := g.kinds[gk]; known != nil && *known == r {
		return known
	}
	g.kinds[gk] = &r
	return &r
}

// setResources replaces the table of kinds.
func (g *graph) setResources(list []objects.Resource) {
	g.mu.Lock()
	defer g.mu.Unlock()
	kinds := make(map[schema.GroupKind]*objects.Resource, len(list))
	for _, r := range list {
		gk := schema.GroupKind{Group: r.GVR.Group, Kind: r.Kind}
		if known := g.kinds[gk]; known != nil && *known == r {
			kinds[gk] = known
			continue
		}
		kinds[gk] = &r
	}
	g.kinds = kinds
}

// start marks the graph as complete and returns every UID that may need action.
func (g *graph) start() []types.UID {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.synced = true
	var out []types.UID
	for uid, n := range g.nodes {
		if n.foreground || n.orphan {
			out = append(out, uid)
		}
		if n.virtual() || n.foreground {
			for d := range n.dependents {
				out = append(out, d.uid)
			}
		}
	}
	return out
}

func has(o metav1.Object, finalizer string) bool {
	return slices.Contains(o.GetFinalizers(), finalizer)
}

func sameOwners(a, b []metav1.OwnerReference) bool {
	return slices.EqualFunc(a, b, func(x, y metav1.OwnerReference) bool { return x.UID == y.UID && blocks(x) == blocks(y) })
}

func blocks(ref metav1.OwnerReference) bool {
	return ref.BlockOwnerDeletion != nil && *ref.BlockOwnerDeletion
}
