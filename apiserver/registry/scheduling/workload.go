package scheduling

import (
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"

	"github.com/periplus/periplus/apiserver/registry"
	"github.com/periplus/periplus/apiserver/registry/kind"
)

// workloads are only served as beta (KEP-4671).
func workloads() *registry.Resource {
	return &registry.Resource{
		GVR:        schedulingv1beta1.SchemeGroupVersion.WithResource("workloads"),
		Kind:       "Workload",
		Singular:   "workload",
		Namespaced: true,
		New:        kind.Make[schedulingv1beta1.Workload],
		NewList:    kind.Make[schedulingv1beta1.WorkloadList],
		Strategy:   registry.Funcs[*schedulingv1beta1.Workload]{Fixed: registry.Traits{NoUnconditionalUpdate: true}},
	}
}
