package admissionregistration

import (
	"context"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/periplus/periplus/apiserver/registry"
	"github.com/periplus/periplus/apiserver/registry/kind"
)

func validatingAdmissionPolicyBindings() *registry.Resource {
	s := kind.Counted(func(obj *admissionv1.ValidatingAdmissionPolicyBinding) *admissionv1.ValidatingAdmissionPolicyBindingSpec {
		return &obj.Spec
	})
	s.DefaultFunc = func(b *admissionv1.ValidatingAdmissionPolicyBinding) { matchResources(b.Spec.MatchResources) }
	s.ValidateCreate = validatePolicyBinding
	s.ValidateChange = func(ctx context.Context, b, _ *admissionv1.ValidatingAdmissionPolicyBinding) field.ErrorList {
		return validatePolicyBinding(ctx, b)
	}
	s.Fixed.NoUnconditionalUpdate = true
	return &registry.Resource{
		GVR:        version.WithResource("validatingadmissionpolicybindings"),
		Kind:       "ValidatingAdmissionPolicyBinding",
		Singular:   "validatingadmissionpolicybinding",
		Categories: []string{"api-extensions"},
		New:        kind.Make[admissionv1.ValidatingAdmissionPolicyBinding],
		NewList:    kind.Make[admissionv1.ValidatingAdmissionPolicyBindingList],
		Strategy:   s,
	}
}
