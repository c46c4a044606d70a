package mutating

import (
	"cmp"
	"slices"
	"sync"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/periplus/periplus/apiserver/admission"
	"github.com/periplus/periplus/apiserver/admission/policy"
)

var (
	policies = admissionregistrationv1.SchemeGroupVersion.WithResource("mutatingadmissionpolicies")
	bindings = admissionregistrationv1.SchemeGroupVersion.WithResource("mutatingadmissionpolicybindings")
)

// A bound policy is one with at least one binding.
type bound struct {
	*admissionregistrationv1.MutatingAdmissionPolicy
	about    admission.Criteria
	program  func() *program
	bindings []binding
}

type binding struct {
	*admissionregistrationv1.MutatingAdmissionPolicyBinding
	about *admission.Criteria // nil: everything that the policy is about
}

// An index keeps the policies that are bound, in the order of their names.
type index struct {
	objects policy.Objects

	mu       sync.RWMutex
	versions [2]int64
	list     []*bound
	programs map[runtime.Object]func() *program
}

func (x *index) bound() []*bound {
	now := [2]int64{x.objects.Version(policies), x.objects.Version(bindings)}
	x.mu.RLock()
	list, current := x.list, x.versions == now
	x.mu.RUnlock()
	if current {
		return list
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	all, err := x.objects.List(policies, "")
	if err != nil {
		return x.list
	}
	given, err := x.objects.List(bindings, "")
	if err != nil {
		return x.list
	}
	byPolicy := map[string][]binding{}
	for _, obj := range given {
		b := obj.(*admissionregistrationv1.MutatingAdmissionPolicyBinding)
		byPolicy[b.Spec.PolicyName] = append(byPolicy[b.Spec.PolicyName], binding{b, policy.Criteria(b.Spec.MatchResources)})
	}
	x.list = nil
	programs := map[runtime.Object]func() *program{}
	for _, obj := range all {
		p := obj.(*admissionregistrationv1.MutatingAdmissionPolicy)
		if len(byPolicy[p.Name]) == 0 || p.Spec.MatchConstraints == nil {
			continue
		}
		if programs[obj] = x.programs[obj]; programs[obj] == nil {
			programs[obj] = sync.OnceValue(func() *program { return compile(p) })
		}
		x.list = append(x.list, &bound{p, *policy.Criteria(p.Spec.MatchConstraints), programs[obj], byPolicy[p.Name]})
	}
	slices.SortFunc(x.list, func(a, b *bound) int { return cmp.Compare(a.Name, b.Name) })
	x.programs, x.versions = programs, now
	return x.list
}
