package authorization

import (
	authorizationv1 "k8s.io/api/authorization/v1"

	"github.com/periplus/periplus/apiserver/registry"
	"github.com/periplus/periplus/apiserver/registry/kind"
)

func selfSubjectRulesReviews() *registry.Resource {
	s := registry.Funcs[*authorizationv1.SelfSubjectRulesReview]{}
	return &registry.Resource{
		GVR:      version.WithResource("selfsubjectrulesreviews"),
		Kind:     "SelfSubjectRulesReview",
		Singular: "selfsubjectrulesreview",
		New:      kind.Make[authorizationv1.SelfSubjectRulesReview],
		Verbs:    []string{"create"},
		Strategy: s,
	}
}
