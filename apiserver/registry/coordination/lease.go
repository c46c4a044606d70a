package coordination

import (
	"context"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/periplus/periplus/apiserver/registry"
	"github.com/periplus/periplus/apiserver/registry/kind"
)

func leases() *registry.Resource {
	return &registry.Resource{
		GVR:        version.WithResource("leases"),
		Kind:       "Lease",
		Singular:   "lease",
		Namespaced: true,
		New:        kind.Make[coordinationv1.Lease],
		NewList:    kind.Make[coordinationv1.LeaseList],
		Strategy: registry.Funcs[*coordinationv1.Lease]{
			PrepareCreate:  func(_ context.Context, l *coordinationv1.Lease) { dropAlphaFields(&l.Spec) },
			PrepareUpdate:  func(_ context.Context, l, _ *coordinationv1.Lease) { dropAlphaFields(&l.Spec) },
			ValidateCreate: func(_ context.Context, l *coordinationv1.Lease) field.ErrorList { return leaseSpec(&l.Spec) },
			ValidateChange: func(_ context.Context, l, _ *coordinationv1.Lease) field.ErrorList { return leaseSpec(&l.Spec) },
			Fixed:          registry.Traits{CreateOnUpdate: true, NoUnconditionalUpdate: true},
		},
	}
}

// dropAlphaFields removes what belongs to coordinated leader election (KEP-4355).
func dropAlphaFields(spec *coordinationv1.LeaseSpec) {
	spec.Strategy, spec.PreferredHolder = nil, nil
}

func leaseSpec(spec *coordinationv1.LeaseSpec) field.ErrorList {
	var errs field.ErrorList
	at := field.NewPath("spec")
	if d := spec.LeaseDurationSeconds; d != nil && *d <= 0 {
		errs = append(errs, field.Invalid(at.Child("leaseDurationSeconds"), d, "must be greater than 0"))
	}
	if n := spec.LeaseTransitions; n != nil && *n < 0 {
		errs = append(errs, field.Invalid(at.Child("leaseTransitions"), n, "must be greater than or equal to 0"))
	}
	return errs
}
