package garbagecollector

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/periplus/periplus/client/objects"
)

// A view is a copy of a node at one moment, to act upon without the lock.
type view struct {
	object
	virtual, deleting, foreground, orphan bool
	owners                                []metav1.OwnerReference
	dependents                            []dependent
}

// An object is where one can be found.
type object struct {
	resource  objects.Resource
	namespace string
	name      string
	uid       types.UID
}

type dependent struct {
	object
	virtual    bool
	deleting   bool
	foreground bool
	blocks     bool                  // it keeps its owner from being deleted
	ref        metav1.OwnerReference // to the viewed node
}

// view returns a copy of a node; ok is false when there is nothing to act upon.
func (g *graph) view(uid types.UID) (v view, ok bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	n := g.nodes[uid]
	if n == nil || !g.synced {
		return view{}, false
	}
	v = view{
		object: n.object(), virtual: n.virtual(),
		deleting: n.deleting, foreground: n.foreground, orphan: n.orphan, owners: n.owners,
	}
	for d := range n.dependents {
		for _, ref := range d.owners {
			if ref.UID == uid {
				v.dependents = append(v.dependents, dependent{
					object: d.object(), virtual: d.virtual(), deleting: d.deleting, foreground: d.foreground, blocks: blocks(ref), ref: ref,
				})
				break
			}
		}
	}
	return v, true
}

func (n *node) object() object {
	o := object{namespace: n.namespace, name: n.name, uid: n.uid}
	if n.resource != nil {
		o.resource = *n.resource
	}
	return o
}

// What the graph knows of an owner.
type ownerState int

const (
	ownerUnknown  ownerState = iota // has to be looked up
	ownerSolid                      // exists
	ownerAbsent                     // is gone
	ownerWaiting                    // is being deleted and waits for its dependents
	ownerMismatch                   // has this UID but another name, kind or namespace
)

// owner says what the graph knows of the owner that an object of namespace ns refers to.
func (g *graph) owner(ref metav1.OwnerReference, ns string) ownerState {
	g.mu.Lock()
	defer g.mu.Unlock()
	n := g.nodes[ref.UID]
	switch {
	case (n == nil || n.virtual()) && (g.absent[absence{ref.UID, anywhere}] || g.absent[absence{ref.UID, ns}]):
		return ownerAbsent
	case n == nil || n.virtual():
		return ownerUnknown
	case n.resource.Kind != ref.Kind || n.name != ref.Name || n.resource.Namespaced && n.namespace != ns:
		return ownerMismatch
	case n.foreground:
		return ownerWaiting
	}
	return ownerSolid
}

// kind returns the resource that an owner reference's kind belongs to, in the
// version that the reference names.
func (g *graph) kind(ref metav1.OwnerReference) (objects.Resource, bool) {
	gv, err := schema.ParseGroupVersion(ref.APIVersion)
	if err != nil {
		return objects.Resource{}, false
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	r := g.kinds[schema.GroupKind{Group: gv.Group, Kind: ref.Kind}]
	if r == nil {
		return objects.Resource{}, false
	}
	return *r, true
}

// setAbsent notes that an owner is not in a namespace.
func (g *graph) setAbsent(uid types.UID, namespace string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.rememberAbsentLocked(absence{uid, namespace})
}
