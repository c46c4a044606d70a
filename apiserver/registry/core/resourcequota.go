package core

import (
	"context"

	corev1 "k8s.io/api/core/v1"
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
	s.ValidateCreate = func(_ context.Context, q *corev1.ResourceQuota) field.ErrorList { return quotaAmounts(q) }
	s.ValidateChange = func(_ context.Context, q, old *corev1.ResourceQuota) field.ErrorList {
		errs := quotaAmounts(q)
		if !validation.Equal(q.Spec.Scopes, old.Spec.Scopes) {
			errs = append(errs, field.Invalid(field.NewPath("spec", "scopes"), q.Spec.Scopes, validation.ImmutableError))
		}
		return errs
	}
	status := resourceQuotaHalves.Status()
	status.DefaultFunc = defaultQuota
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

func quotaAmounts(q *corev1.ResourceQuota) field.ErrorList {
	var errs field.ErrorList
	for name, quantity := range q.Spec.Hard {
		at := field.NewPath("spec", "hard").Key(string(name))
		errs = append(errs, validation.ResourceName(name, at)...)
		errs = append(errs, validation.Quantity(name, quantity, at)...)
	}
	return errs
}
