package authentication

import (
	authenticationv1 "k8s.io/api/authentication/v1"

	"github.com/periplus/periplus/apiserver/registry"
	"github.com/periplus/periplus/apiserver/registry/kind"
)

func tokenReviews() *registry.Resource {
	s := registry.Funcs[*authenticationv1.TokenReview]{}
	return &registry.Resource{
		GVR:      version.WithResource("tokenreviews"),
		Kind:     "TokenReview",
		Singular: "tokenreview",
		New:      kind.Make[authenticationv1.TokenReview],
		Verbs:    []string{"create"},
		Strategy: s,
	}
}
