package policy

import (
	"context"

	policyv1 "k8s.io/api/policy/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/periplus/periplus/apiserver/registry"
	"github.com/periplus/periplus/apiserver/registry/kind"
	"github.com/periplus/periplus/apiserver/validation"
)

var podDisruptionBudgetHalves = kind.Split(func(obj *policyv1.PodDisruptionBudget) (*policyv1.PodDisruptionBudgetSpec, *policyv1.PodDisruptionBudgetStatus) {
	return &obj.Spec, &obj.Status
})

func podDisruptionBudgets() *registry.Resource {
	s := podDisruptionBudgetHalves.Main()
	s.ValidateCreate = func(_ context.Context, pdb *policyv1.PodDisruptionBudget) field.ErrorList {
		return budgetSpec(&pdb.Spec)
	}
	s.ValidateChange = func(_ context.Context, pdb, _ *policyv1.PodDisruptionBudget) field.ErrorList {
		return budgetSpec(&pdb.Spec)
	}
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

func budgetSpec(spec *policyv1.PodDisruptionBudgetSpec) field.ErrorList {
	var errs field.ErrorList
	at := field.NewPath("spec")
	if spec.MinAvailable != nil && spec.MaxUnavailable != nil {
		errs = append(errs, field.Invalid(at, *spec, "minAvailable and maxUnavailable cannot be both set"))
	}
	for _, n := range []struct {
		name  string
		value *intstr.IntOrString
	}{{"minAvailable", spec.MinAvailable}, {"maxUnavailable", spec.MaxUnavailable}} {
		if n.value != nil {
			errs = append(errs, validation.PositiveIntOrPercent(*n.value, at.Child(n.name))...)
			errs = append(errs, validation.NotMoreThan100Percent(*n.value, at.Child(n.name))...)
		}
	}
	errs = append(errs, metav1validation.ValidateLabelSelector(spec.Selector, metav1validation.LabelSelectorValidationOptions{}, at.Child("selector"))...)
	if p := spec.UnhealthyPodEvictionPolicy; p != nil && *p != policyv1.IfHealthyBudget && *p != policyv1.AlwaysAllow {
		errs = append(errs, field.NotSupported(at.Child("unhealthyPodEvictionPolicy"), *p, []policyv1.UnhealthyPodEvictionPolicyType{policyv1.AlwaysAllow, policyv1.IfHealthyBudget}))
	}
	return errs
}
