package authentication

import (
	authenticationv1 "k8s.io/api/authentication/v1"

	"github.com/periplus/periplus/apiserver/registry"
	"github.com/periplus/periplus/apiserver/registry/kind"
)

func selfSubjectReviews() *registry.Resource {
	s := registry.Funcs[*authenticationv1.SelfSubjectReview]{}
	return &registry.Resource{
		GVR:      version.WithResource("selfsubjectreviews"),
		Kind:     "SelfSubjectReview",
		Singular: "selfsubjectreview",
		New:      kind.Make[authenticationv1.SelfSubjectReview],
		Verbs:    []string{"create"},
		Strategy: s,
	}
}
