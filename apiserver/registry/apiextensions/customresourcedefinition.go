package apiextensions

import (
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/periplus/periplus/apiserver/registry"
	"github.com/periplus/periplus/apiserver/registry/kind"
)

var customResourceDefinitionHalves = kind.Split(func(obj *apiextensionsv1.CustomResourceDefinition) (*apiextensionsv1.CustomResourceDefinitionSpec, *apiextensionsv1.CustomResourceDefinitionStatus) {
	return &obj.Spec, &obj.Status
})

func customResourceDefinitions() *registry.Resource {
	s := customResourceDefinitionHalves.Main()
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
