package policy

import (
	"cmp"
	"slices"
	"sync"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/periplus/periplus/apiserver/admission"
)

// An object is a policy or a binding of one of the kinds.
type object interface {
	runtime.Object
	metav1.Object
}

// A Kind is one kind of policies P with its bindings B; a policy becomes a program R.
type Kind[P, B object, R any] struct {
	Policies, Bindings schema.GroupVersionResource
	// Constraints say what a policy is about; nil: nothing.
	Constraints func(P) *admissionregistrationv1.MatchResources
	// Binding returns whose binding it is, with which parameters, and for what of it.
	Binding func(B) (policy string, params *admissionregistrationv1.ParamRef, of *admissionregistrationv1.MatchResources)
	Compile func(P) R
}

// A Bound policy is one with at least one binding.
type Bound[P, B object, R any] struct {
	Policy   P
	Program  func() R // compiled when it is first needed
	Bindings []Binding[B]

	about admission.Criteria
}

// A Binding puts a policy into force.
type Binding[B object] struct {
	Object B
	Params *admissionregistrationv1.ParamRef

	about *admission.Criteria // nil: everything that the policy is about
}

// Match returns the version in which the policy looks at a write; nil: it does not.
func (b *Bound[P, B, R]) Match(a *admission.Attributes, objects Objects) (*admission.Match, error) {
	return b.about.Match(a, objects)
}

// In returns the bindings by which the policy is in force for a write that it is about.
func (b *Bound[P, B, R]) In(a *admission.Attributes, objects Objects) ([]*Binding[B], error) {
	var out []*Binding[B]
	for i := range b.Bindings {
		one := &b.Bindings[i]
		if one.about != nil {
			within, err := one.about.Match(a, objects)
			if err != nil {
				return nil, err
			}
			if within == nil {
				continue
			}
		}
		out = append(out, one)
	}
	return out, nil
}

// An Index keeps the policies of a kind that are bound, in the order of their names.
type Index[P, B object, R any] struct {
	kind    Kind[P, B, R]
	objects Objects

	mu       sync.RWMutex
	versions [2]int64
	list     []*Bound[P, B, R]
	programs map[runtime.Object]func() R
}

// NewIndex returns the index of a kind.
func NewIndex[P, B object, R any](objects Objects, k Kind[P, B, R]) *Index[P, B, R] {
	return &Index[P, B, R]{kind: k, objects: objects, versions: [2]int64{-1, -1}}
}

// Bound returns the policies that are bound now. While nothing of the kind changes this
// costs two comparisons of numbers; what has not changed is not compiled again.
func (x *Index[P, B, R]) Bound() []*Bound[P, B, R] {
	now := [2]int64{x.objects.Version(x.kind.Policies), x.objects.Version(x.kind.Bindings)}
	x.mu.RLock()
	list, current := x.list, x.versions == now
	x.mu.RUnlock()
	if current {
		return list
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	// A change during the listing raises a version again, and the next call lists anew.
	policies, err := x.objects.List(x.kind.Policies, "")
	if err != nil {
		return x.list
	}
	bindings, err := x.objects.List(x.kind.Bindings, "")
	if err != nil {
		return x.list
	}
	x.build(policies, bindings)
	x.versions = now
	return x.list
}

func (x *Index[P, B, R]) build(policies, bindings []runtime.Object) {
	of := map[string][]Binding[B]{}
	for _, obj := range bindings {
		b := obj.(B)
		name, params, about := x.kind.Binding(b)
		of[name] = append(of[name], Binding[B]{b, params, Criteria(about)})
	}
	programs := map[runtime.Object]func() R{}
	list := make([]*Bound[P, B, R], 0, len(policies))
	for _, obj := range policies {
		p := obj.(P)
		about := x.kind.Constraints(p)
		if len(of[p.GetName()]) == 0 || about == nil {
			continue
		}
		if programs[obj] = x.programs[obj]; programs[obj] == nil {
			programs[obj] = sync.OnceValue(func() R { return x.kind.Compile(p) })
		}
		list = append(list, &Bound[P, B, R]{Policy: p, Program: programs[obj], Bindings: of[p.GetName()], about: *Criteria(about)})
	}
	slices.SortFunc(list, func(a, b *Bound[P, B, R]) int { return cmp.Compare(a.Policy.GetName(), b.Policy.GetName()) })
	x.list, x.programs = list, programs
}
