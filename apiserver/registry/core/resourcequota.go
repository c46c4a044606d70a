package core

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/periplus/periplus/apiserver/defaults"
	"github.com/periplus/periplus/apiserver/registry"
	"github.com/periplus/periplus/apiserver/registry/kind"
	"github.com/periplus/periplus/apiserver/validation"
)

var resourceQuotaHalves = kind.Split(func(obj *corev1.ResourceQuota) (*corev1.ResourceQuotaSpec, *corev1.ResourceQuotaStatus) {
	return &obj.Spec, &obj.Status
})

func resourceQuotas() *registry.Resource {
	s := resourceQuotaHalves.MainWithoutGeneration()
	s.DefaultFunc = defaultQuota
	s.ValidateCreate = func(_ context.Context, q *corev1.ResourceQuota) field.ErrorList { return quotaSpec(&q.Spec) }
	s.ValidateChange = func(_ context.Context, q, old *corev1.ResourceQuota) field.ErrorList {
		errs := quotaSpec(&q.Spec)
		if !sets.New(q.Spec.Scopes...).Equal(sets.New(old.Spec.Scopes...)) {
			errs = append(errs, field.Invalid(field.NewPath("spec", "scopes"), q.Spec.Scopes, validation.ImmutableError))
		}
		return errs
	}
	s.WarningsFunc = quotaWarnings
	status := resourceQuotaHalves.Status()
	status.DefaultFunc = defaultQuota
	status.ValidateChange = func(_ context.Context, q, _ *corev1.ResourceQuota) field.ErrorList {
		return append(quotaAmounts(q.Status.Hard, field.NewPath("status", "hard")), quotaAmounts(q.Status.Used, field.NewPath("status", "used"))...)
	}
	return &registry.Resource{
		GVR:        version.WithResource("resourcequotas"),
		Kind:       "ResourceQuota",
		Singular:   "resourcequota",
		ShortNames: []string{"quota"},
		Namespaced: true,
		New:        kind.Make[corev1.ResourceQuota],
		NewList:    kind.Make[corev1.ResourceQuotaList],
		Strategy:   s,
		Status:     status,
	}
}

func defaultQuota(q *corev1.ResourceQuota) {
	defaults.Resources(q.Spec.Hard)
	defaults.Resources(q.Status.Hard)
	defaults.Resources(q.Status.Used)
}

// quotaWarnings tells of quotas whose requests are above their limits.
func quotaWarnings(_ context.Context, q, old *corev1.ResourceQuota) (list []string) {
	if old != nil {
		return nil
	}
	for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceStorage, corev1.ResourceEphemeralStorage} {
		requests := "requests." + name
		request, ok := q.Spec.Hard[requests]
		if !ok && (name == corev1.ResourceCPU || name == corev1.ResourceMemory) {
			requests = name
			request, ok = q.Spec.Hard[name]
		}
		limit, limited := q.Spec.Hard["limits."+name]
		if ok && limited && request.Cmp(limit) > 0 {
			list = append(list, fmt.Sprintf("ResourceQuota %s (%s) should be less than limits.%s (%s)", requests, request.String(), name, limit.String()))
		}
	}
	return list
}

func quotaSpec(spec *corev1.ResourceQuotaSpec) field.ErrorList {
	at := field.NewPath("spec")
	errs := quotaAmounts(spec.Hard, at.Child("hard"))
	scopes := at.Child("scopes")
	for _, scope := range spec.Scopes {
		if !knownScope(scope) {
			errs = append(errs, field.Invalid(scopes, spec.Scopes, "unsupported scope"))
		}
		if !scopeFits(scope, spec.Hard) {
			errs = append(errs, field.Invalid(scopes, spec.Scopes, "unsupported scope applied to resource"))
		}
	}
	if conflicting(spec.Scopes) {
		errs = append(errs, field.Invalid(scopes, spec.Scopes, "conflicting scopes"))
	}
	return append(errs, scopeSelector(spec, at.Child("scopeSelector", "matchExpressions"))...)
}

func quotaAmounts(list corev1.ResourceList, at *field.Path) (errs field.ErrorList) {
	for _, name := range slices.Sorted(maps.Keys(list)) {
		errs = append(errs, validation.QuotaResourceName(name, at.Key(string(name)))...)
		errs = append(errs, validation.Quantity(name, list[name], at.Key(string(name)))...)
	}
	return errs
}

func scopeSelector(spec *corev1.ResourceQuotaSpec, at *field.Path) (errs field.ErrorList) {
	if spec.ScopeSelector == nil {
		return nil
	}
	var scopes []corev1.ResourceQuotaScope
	for _, r := range spec.ScopeSelector.MatchExpressions {
		scopes = append(scopes, r.ScopeName)
		if !knownScope(r.ScopeName) {
			errs = append(errs, field.Invalid(at.Child("scopeName"), r.ScopeName, "unsupported scope"))
		}
		if !scopeFits(r.ScopeName, spec.Hard) {
			errs = append(errs, field.Invalid(at, spec.ScopeSelector, "unsupported scope applied to resource"))
		}
		switch r.ScopeName {
		case corev1.ResourceQuotaScopeBestEffort, corev1.ResourceQuotaScopeNotBestEffort, corev1.ResourceQuotaScopeTerminating,
			corev1.ResourceQuotaScopeNotTerminating, corev1.ResourceQuotaScopeCrossNamespacePodAffinity:
			if r.Operator != corev1.ScopeSelectorOpExists {
				errs = append(errs, field.Invalid(at.Child("operator"), r.Operator,
					"must be 'Exists' when scope is any of ResourceQuotaScopeTerminating, ResourceQuotaScopeNotTerminating, ResourceQuotaScopeBestEffort, ResourceQuotaScopeNotBestEffort or ResourceQuotaScopeCrossNamespacePodAffinity"))
			}
		}
		switch r.Operator {
		case corev1.ScopeSelectorOpIn, corev1.ScopeSelectorOpNotIn:
			if len(r.Values) == 0 {
				errs = append(errs, field.Required(at.Child("values"), "must be at least one value when `operator` is 'In' or 'NotIn' for scope selector"))
			}
		case corev1.ScopeSelectorOpExists, corev1.ScopeSelectorOpDoesNotExist:
			if len(r.Values) > 0 {
				errs = append(errs, field.Invalid(at.Child("values"), r.Values, "must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope selector"))
			}
		default:
			errs = append(errs, field.Invalid(at.Child("operator"), r.Operator, "not a valid selector operator"))
		}
	}
	if conflicting(scopes) {
		errs = append(errs, field.Invalid(at, spec.Scopes, "conflicting scopes"))
	}
	return errs
}

func conflicting(scopes []corev1.ResourceQuotaScope) bool {
	set := sets.New(scopes...)
	return set.HasAll(corev1.ResourceQuotaScopeBestEffort, corev1.ResourceQuotaScopeNotBestEffort) ||
		set.HasAll(corev1.ResourceQuotaScopeTerminating, corev1.ResourceQuotaScopeNotTerminating)
}

var (
	podResources = sets.New(corev1.ResourcePods, corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceLimitsCPU,
		corev1.ResourceLimitsMemory, corev1.ResourceRequestsCPU, corev1.ResourceRequestsMemory)
	claimResources = sets.New(corev1.ResourcePersistentVolumeClaims, corev1.ResourceRequestsStorage)
	// scopeResources are the resources that a scope can be for.
	scopeResources = map[corev1.ResourceQuotaScope]sets.Set[corev1.ResourceName]{
		corev1.ResourceQuotaScopeTerminating:               podResources,
		corev1.ResourceQuotaScopeNotTerminating:            podResources,
		corev1.ResourceQuotaScopeNotBestEffort:             podResources,
		corev1.ResourceQuotaScopePriorityClass:             podResources,
		corev1.ResourceQuotaScopeCrossNamespacePodAffinity: podResources,
		corev1.ResourceQuotaScopeBestEffort:                sets.New(corev1.ResourcePods),
		corev1.ResourceQuotaScopeVolumeAttributesClass:     claimResources,
	}
)

func knownScope(scope corev1.ResourceQuotaScope) bool {
	_, ok := scopeResources[scope]
	return ok
}

func scopeFits(scope corev1.ResourceQuotaScope, hard corev1.ResourceList) bool {
	fitting, ok := scopeResources[scope]
	if !ok {
		return true
	}
	for name := range hard {
		if !fitting.Has(name) && !strings.Contains(string(name), "/") && validation.IsQuotaResource(name) {
			return false
		}
	}
	return true
}
