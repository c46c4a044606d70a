package authorization

import (
	authorizationv1 "k8s.io/api/authorization/v1"

	"github.com/periplus/periplus/apiserver/registry"
	"github.com/periplus/periplus/apiserver/registry/kind"
)

func subjectAccessReviews() *registry.Resource {
	s := registry.Funcs[*authorizationv1.SubjectAccessReview]{}
	return &registry.Resource{
		GVR:      version.WithResource("subjectaccessreviews"),
		Kind:     "SubjectAccessReview",
		Singular: "subjectaccessreview",
		New:      kind.Make[authorizationv1.SubjectAccessReview],
		Verbs:    []string{"create"},
		Strategy: s,
	}
}
