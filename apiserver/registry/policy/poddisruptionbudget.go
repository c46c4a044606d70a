package policy

import (
	"context"
	"slices"

	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
		return budgetSpec(&pdb.Spec, nil)
	}
	s.ValidateChange = func(_ context.Context, pdb, old *policyv1.PodDisruptionBudget) field.ErrorList {
		return budgetSpec(&pdb.Spec, &old.Spec)
	}
	main := s
	s.PrepareCreate = func(ctx context.Context, pdb *policyv1.PodDisruptionBudget) {
		main.PrepareCreate(ctx, pdb)
		dropMarker(pdb, nil)
	}
	s.PrepareUpdate = func(ctx context.Context, pdb, old *policyv1.PodDisruptionBudget) {
		main.PrepareUpdate(ctx, pdb, old)
		dropMarker(pdb, old)
	}
	status := podDisruptionBudgetHalves.Status()
	status.Fixed.NoUnconditionalUpdate = true
	status.ValidateChange = func(_ context.Context, pdb, _ *policyv1.PodDisruptionBudget) field.ErrorList {
		return budgetStatus(&pdb.Status)
	}
	s.Fixed.NoUnconditionalUpdate = true
	s.Name = validation.AnyName
	return &registry.Resource{
		GVR:        version.WithResource("poddisruptionbudgets"),
		Kind:       "PodDisruptionBudget",
		Singular:   "poddisruptionbudget",
		ShortNames: []string{"pdb"},
		Namespaced: true,
		New:        kind.Make[policyv1.PodDisruptionBudget],
		NewList:    kind.Make[policyv1.PodDisruptionBudgetList],
		Strategy:   s,
		Status:     status,
	}
}

// marker is the key in upstream's form of the selectors of v1beta1 that select all
// pods or none.
const marker = "pdb.kubernetes.io/deprecated-v1beta1-empty-selector-match"

// dropMarker takes upstream's marker out of selectors that say more than it.
func dropMarker(pdb, old *policyv1.PodDisruptionBudget) {
	s := pdb.Spec.Selector
	if s == nil || old != nil && validation.Equal(old.Spec.Selector, s) {
		return
	}
	none := metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: marker, Operator: metav1.LabelSelectorOpExists}}}
	if validation.Equal(s, &none) {
		return
	}
	s.MatchExpressions = slices.DeleteFunc(s.MatchExpressions, func(r metav1.LabelSelectorRequirement) bool { return r.Key == marker })
}

func budgetStatus(s *policyv1.PodDisruptionBudgetStatus) field.ErrorList {
	at := field.NewPath("status")
	errs := metav1validation.ValidateConditions(s.Conditions, at.Child("conditions"))
	errs = append(errs, validation.Nonnegative(int64(s.DisruptionsAllowed), at.Child("disruptionsAllowed"))...)
	errs = append(errs, validation.Nonnegative(int64(s.CurrentHealthy), at.Child("currentHealthy"))...)
	errs = append(errs, validation.Nonnegative(int64(s.DesiredHealthy), at.Child("desiredHealthy"))...)
	return append(errs, validation.Nonnegative(int64(s.ExpectedPods), at.Child("expectedPods"))...)
}

func budgetSpec(spec, old *policyv1.PodDisruptionBudgetSpec) field.ErrorList {
	var errs field.ErrorList
	at := field.NewPath("spec")
	var before *metav1.LabelSelector
	if old != nil {
		before = old.Selector
	}
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
	errs = append(errs, validation.LabelSelector(spec.Selector, before, at.Child("selector"))...)
	if p := spec.UnhealthyPodEvictionPolicy; p != nil && *p != policyv1.IfHealthyBudget && *p != policyv1.AlwaysAllow {
		errs = append(errs, field.NotSupported(at.Child("unhealthyPodEvictionPolicy"), *p, []policyv1.UnhealthyPodEvictionPolicyType{policyv1.AlwaysAllow, policyv1.IfHealthyBudget}))
	}
	return errs
}
