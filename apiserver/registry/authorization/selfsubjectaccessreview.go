package authorization

import (
	authorizationv1 "k8s.io/api/authorization/v1"

	"github.com/periplus/periplus/apiserver/registry"
	"github.com/periplus/periplus/apiserver/registry/kind"
)

func selfSubjectAccessReviews() *registry.Resource {
	s := registry.Funcs[*authorizationv1.SelfSubjectAccessReview]{}
	return &registry.Resource{
		GVR:      version.WithResource("selfsubjectaccessreviews"),
		Kind:     "SelfSubjectAccessReview",
		Singular: "selfsubjectaccessreview",
		New:      kind.Make[authorizationv1.SelfSubjectAccessReview],
		Verbs:    []string{"create"},
		Strategy: s,
	}
}
