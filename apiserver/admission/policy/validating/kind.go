package validating

import (
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"

	"github.com/periplus/periplus/apiserver/admission/policy"
)

type (
	rule    = admissionregistrationv1.ValidatingAdmissionPolicy
	ruling  = admissionregistrationv1.ValidatingAdmissionPolicyBinding
	bound   = policy.Bound[*rule, *ruling, *program]
	binding = policy.Binding[*ruling]
	index   = policy.Index[*rule, *ruling, *program]
)

var kind = policy.Kind[*rule, *ruling, *program]{
	Policies:    admissionregistrationv1.SchemeGroupVersion.WithResource("validatingadmissionpolicies"),
	Bindings:    admissionregistrationv1.SchemeGroupVersion.WithResource("validatingadmissionpolicybindings"),
	Constraints: func(p *rule) *admissionregistrationv1.MatchResources { return p.Spec.MatchConstraints },
	Binding: func(b *ruling) (string, *admissionregistrationv1.ParamRef, *admissionregistrationv1.MatchResources) {
		return b.Spec.PolicyName, b.Spec.ParamRef, b.Spec.MatchResources
	},
	Compile: compile,
}
