package admissionregistration

import (
	"fmt"
	"slices"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// reviews are answered and not stored; no webhook is asked about them, as the cluster
// could not tell any more who may do what.
var reviews = []schema.GroupResource{
	{Group: "authentication.k8s.io", Resource: "selfsubjectreviews"},
	{Group: "authentication.k8s.io", Resource: "tokenreviews"},
	{Group: "authorization.k8s.io", Resource: "localsubjectaccessreviews"},
	{Group: "authorization.k8s.io", Resource: "selfsubjectaccessreviews"},
	{Group: "authorization.k8s.io", Resource: "selfsubjectrulesreviews"},
	{Group: "authorization.k8s.io", Resource: "subjectaccessreviews"},
}

// warnings are about rules that name what webhooks are not asked about.
func warnings[W any](webhooks []W, rules func(*W) []admissionv1.RuleWithOperations) (out []string) {
	for i := range webhooks {
		for j, r := range rules(&webhooks[i]) {
			if slices.Contains(r.APIGroups, "*") || slices.Contains(r.Resources, "*") {
				continue // it may mean others
			}
			at := field.NewPath("webhooks").Index(i).Child("rules").Index(j)
			var told []schema.GroupResource
			for _, group := range r.APIGroups {
				for _, resource := range r.Resources {
					gr := schema.GroupResource{Group: group, Resource: resource}
					if slices.Contains(reviews, gr) && !slices.Contains(told, gr) {
						told = append(told, gr)
						out = append(out, fmt.Sprintf("%s: %s is excluded from admission webhooks; this rule will have no effect", at, gr))
					}
				}
			}
		}
	}
	return out
}
