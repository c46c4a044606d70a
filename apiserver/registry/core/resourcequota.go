package core

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/periplus/periplus/apiserver/registry"
	"github.com/periplus/periplus/apiserver/registry/kind"
)

var resourceQuotaHalves = kind.Split(func(obj *corev1.ResourceQuota) (*corev1.ResourceQuotaSpec, *corev1.ResourceQuotaStatus) {
	return &obj.Spec, &obj.Status
})

func resourceQuotas() *registry.Resource {
	s := resourceQuotaHalves.MainWithoutGeneration()
	return &registry.Resource{
		GVR:        version.WithResource("resourcequotas"),
		Kind:       "ResourceQuota",
		Singular:   "resourcequota",
		ShortNames: []string{"quota"},
		Namespaced: true,
		New:        kind.Make[corev1.ResourceQuota],
		NewList:    kind.Make[corev1.ResourceQuotaList],
		Strategy:   s,
		Status:     resourceQuotaHalves.Status(),
	}
}
