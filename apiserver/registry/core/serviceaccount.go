package core

import (
	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"

	"github.com/periplus/periplus/apiserver/registry"
	"github.com/periplus/periplus/apiserver/registry/kind"
)

func serviceAccounts() *registry.Resource {
	s := registry.Funcs[*corev1.ServiceAccount]{}
	s.Name = apivalidation.ValidateServiceAccountName
	return &registry.Resource{
		GVR:        version.WithResource("serviceaccounts"),
		Kind:       "ServiceAccount",
		Singular:   "serviceaccount",
		ShortNames: []string{"sa"},
		Namespaced: true,
		New:        kind.Make[corev1.ServiceAccount],
		NewList:    kind.Make[corev1.ServiceAccountList],
		Strategy:   s,
	}
}
