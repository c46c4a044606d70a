package resource

import (
	resourcev1 "k8s.io/api/resource/v1"

	"github.com/periplus/periplus/apiserver/registry"
	"github.com/periplus/periplus/apiserver/registry/kind"
)

func resourceClaimTemplates() *registry.Resource {
	s := registry.Funcs[*resourcev1.ResourceClaimTemplate]{}
	s.DefaultFunc = func(t *resourcev1.ResourceClaimTemplate) { defaultRequests(&t.Spec.Spec) }
	return &registry.Resource{
		GVR:        version.WithResource("resourceclaimtemplates"),
		Kind:       "ResourceClaimTemplate",
		Singular:   "resourceclaimtemplate",
		Namespaced: true,
		New:        kind.Make[resourcev1.ResourceClaimTemplate],
		NewList:    kind.Make[resourcev1.ResourceClaimTemplateList],
		Also:       olderResourceClaimTemplate(),
		Strategy:   s,
	}
}
