package scheduling

import (
	"context"

	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/periplus/periplus/apiserver/registry"
	"github.com/periplus/periplus/apiserver/registry/kind"
)

// workloads are only served as beta (KEP-4671).
func workloads() *registry.Resource {
	at := field.NewPath("spec")
	return &registry.Resource{
		GVR:        schedulingv1beta1.SchemeGroupVersion.WithResource("workloads"),
		Kind:       "Workload",
		Singular:   "workload",
		Namespaced: true,
		New:        kind.Make[schedulingv1beta1.Workload],
		NewList:    kind.Make[schedulingv1beta1.WorkloadList],
		Strategy: registry.Funcs[*schedulingv1beta1.Workload]{
			PrepareCreate: func(_ context.Context, w *schedulingv1beta1.Workload) {
				dropFromWorkload(&w.Spec, &schedulingv1beta1.WorkloadSpec{})
			},
			PrepareUpdate: func(_ context.Context, w, old *schedulingv1beta1.Workload) { dropFromWorkload(&w.Spec, &old.Spec) },
			ValidateCreate: func(_ context.Context, w *schedulingv1beta1.Workload) field.ErrorList {
				return append(workloadTree(&w.Spec, at), rules{}.workload(at, &w.Spec, nil)...)
			},
			ValidateChange: func(_ context.Context, w, old *schedulingv1beta1.Workload) field.ErrorList {
				return append(workloadTree(&w.Spec, at), updateRules.workload(at, &w.Spec, &old.Spec)...)
			},
			Name:  apivalidation.NameIsDNSSubdomain,
			Fixed: registry.Traits{NoUnconditionalUpdate: true},
		},
	}
}

// dropFromWorkload drops what belongs to features that are off in this version, unless
// it is there already.
func dropFromWorkload(spec, old *schedulingv1beta1.WorkloadSpec) {
	for i := range spec.PodGroupTemplates {
		t, before := &spec.PodGroupTemplates[i], &schedulingv1beta1.PodGroupTemplate{}
		if i < len(old.PodGroupTemplates) {
			before = &old.PodGroupTemplates[i]
		}
		if before.SchedulingConstraints == nil {
			t.SchedulingConstraints = nil
		}
		if len(before.ResourceClaims) == 0 {
			t.ResourceClaims = nil
		}
		if before.PreemptionPolicy == nil {
			t.PreemptionPolicy = nil
		}
	}
	if len(old.CompositePodGroupTemplates) == 0 {
		spec.CompositePodGroupTemplates = nil
	}
}
