package apiextensions

import (
	"context"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/periplus/periplus/apiserver/registry"
	"github.com/periplus/periplus/apiserver/registry/kind"
)

var customResourceDefinitionHalves = kind.Split(func(obj *apiextensionsv1.CustomResourceDefinition) (*apiextensionsv1.CustomResourceDefinitionSpec, *apiextensionsv1.CustomResourceDefinitionStatus) {
	return &obj.Spec, &obj.Status
})

func customResourceDefinitions() *registry.Resource {
	s := customResourceDefinitionHalves.Main()
	s.DefaultFunc = defaultCRD
	s.PrepareCreate = func(_ context.Context, crd *apiextensionsv1.CustomResourceDefinition) {
		customResourceDefinitionHalves.DropStatus(crd)
		crd.Generation = 1
		addStoredVersion(crd)
	}
	s.PrepareUpdate = func(_ context.Context, crd, old *apiextensionsv1.CustomResourceDefinition) {
		customResourceDefinitionHalves.KeepStatus(crd, old)
		crd.Status.StoredVersions = slices.Clone(crd.Status.StoredVersions)
		customResourceDefinitionHalves.BumpGeneration(crd, old)
		addStoredVersion(crd)
	}
	return &registry.Resource{
		GVR:        version.WithResource("customresourcedefinitions"),
		Kind:       "CustomResourceDefinition",
		Singular:   "customresourcedefinition",
		ShortNames: []string{"crd", "crds"},
		Categories: []string{"api-extensions"},
		New:        kind.Make[apiextensionsv1.CustomResourceDefinition],
		NewList:    kind.Make[apiextensionsv1.CustomResourceDefinitionList],
		Strategy:   s,
		Status:     customResourceDefinitionHalves.Status(),
	}
}

func defaultCRD(crd *apiextensionsv1.CustomResourceDefinition) {
	apiextensionsv1.SetDefaults_CustomResourceDefinition(crd)
	if c := crd.Spec.Conversion; c != nil && c.Webhook != nil && c.Webhook.ClientConfig != nil && c.Webhook.ClientConfig.Service != nil {
		apiextensionsv1.SetDefaults_ServiceReference(c.Webhook.ClientConfig.Service)
	}
}

// addStoredVersion notes the storage version as one that objects may be stored in.
func addStoredVersion(crd *apiextensionsv1.CustomResourceDefinition) {
	for _, v := range crd.Spec.Versions {
		if v.Storage && !slices.Contains(crd.Status.StoredVersions, v.Name) {
			crd.Status.StoredVersions = append(crd.Status.StoredVersions, v.Name)
		}
	}
}
