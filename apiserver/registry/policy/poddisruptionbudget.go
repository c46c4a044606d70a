package policy

import (
	policyv1 "k8s.io/api/policy/v1"

	"github.com/periplus/periplus/apiserver/registry"
	"github.com/periplus/periplus/apiserver/registry/kind"
)

var podDisruptionBudgetHalves = kind.Split(func(obj *policyv1.PodDisruptionBudget) (*policyv1.PodDisruptionBudgetSpec, *policyv1.PodDisruptionBudgetStatus) {
	return &obj.Spec, &obj.Status
})

func podDisruptionBudgets() *registry.Resource {
	s := podDisruptionBudgetHalves.Main()
	s.Fixed.NoUnconditionalUpdate = true
	return &registry.Resource{
		GVR:        version.WithResource("poddisruptionbudgets"),
		Kind:       "PodDisruptionBudget",
		Singular:   "poddisruptionbudget",
		ShortNames: []string{"pdb"},
		Namespaced: true,
		New:        kind.Make[policyv1.PodDisruptionBudget],
		NewList:    kind.Make[policyv1.PodDisruptionBudgetList],
		Strategy:   s,
		Status:     podDisruptionBudgetHalves.Status(),
	}
}
