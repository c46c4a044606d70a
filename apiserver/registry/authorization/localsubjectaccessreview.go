package authorization

import (
	authorizationv1 "k8s.io/api/authorization/v1"

	"github.com/periplus/periplus/apiserver/registry"
	"github.com/periplus/periplus/apiserver/registry/kind"
)

func localSubjectAccessReviews() *registry.Resource {
	s := registry.Funcs[*authorizationv1.LocalSubjectAccessReview]{}
	return &registry.Resource{
		GVR:        version.WithResource("localsubjectaccessreviews"),
		Kind:       "LocalSubjectAccessReview",
		Singular:   "localsubjectaccessreview",
		Namespaced: true,
		New:        kind.Make[authorizationv1.LocalSubjectAccessReview],
		Verbs:      []string{"create"},
		Strategy:   s,
	}
}
