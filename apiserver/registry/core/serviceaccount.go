package core

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"

	"github.com/periplus/periplus/apiserver/registry"
	"github.com/periplus/periplus/apiserver/registry/kind"
)

func serviceAccounts() *registry.Resource {
	return &registry.Resource{
		GVR:        version.WithResource("serviceaccounts"),
		Kind:       "ServiceAccount",
		Singular:   "serviceaccount",
		ShortNames: []string{"sa"},
		Namespaced: true,
		New:        kind.Make[corev1.ServiceAccount],
		NewList:    kind.Make[corev1.ServiceAccountList],
		Strategy: registry.Funcs[*corev1.ServiceAccount]{
			PrepareCreate: func(_ context.Context, account *corev1.ServiceAccount) { onlyNames(account) },
			PrepareUpdate: func(_ context.Context, account, _ *corev1.ServiceAccount) { onlyNames(account) },
			WarningsFunc: func(_ context.Context, account, old *corev1.ServiceAccount) []string {
				const annotation = "kubernetes.io/enforce-mountable-secrets"
				if _, ok := account.Annotations[annotation]; ok && old == nil {
					return []string{"metadata.annotations[" + annotation + "]: deprecated in v1.32+; prefer separate namespaces to isolate access to mounted secrets"}
				}
				return nil
			},
			Name: apivalidation.ValidateServiceAccountName,
		},
	}
}

// onlyNames reduces references to secrets to what means something.
func onlyNames(account *corev1.ServiceAccount) {
	for i, secret := range account.Secrets {
		account.Secrets[i] = corev1.ObjectReference{Name: secret.Name}
	}
}
