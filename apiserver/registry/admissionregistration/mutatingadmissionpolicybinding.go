package admissionregistration

import (
	"context"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	admissionv1beta1 "k8s.io/api/admissionregistration/v1beta1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/periplus/periplus/apiserver/registry"
	"github.com/periplus/periplus/apiserver/registry/kind"
)

func mutatingAdmissionPolicyBindings() *registry.Resource {
	s := kind.Counted(func(obj *admissionv1.MutatingAdmissionPolicyBinding) *admissionv1.MutatingAdmissionPolicyBindingSpec {
		return &obj.Spec
	})
	s.DefaultFunc = func(b *admissionv1.MutatingAdmissionPolicyBinding) { matchResources(b.Spec.MatchResources) }
	s.ValidateCreate = validateMutatingBinding
	s.ValidateChange = func(ctx context.Context, obj, _ *admissionv1.MutatingAdmissionPolicyBinding) field.ErrorList {
		return validateMutatingBinding(ctx, obj)
	}
	s.Fixed.NoUnconditionalUpdate = true
	return &registry.Resource{
		GVR:        version.WithResource("mutatingadmissionpolicybindings"),
		Kind:       "MutatingAdmissionPolicyBinding",
		Singular:   "mutatingadmissionpolicybinding",
		Categories: []string{"api-extensions"},
		New:        kind.Make[admissionv1.MutatingAdmissionPolicyBinding],
		NewList:    kind.Make[admissionv1.MutatingAdmissionPolicyBindingList],
		Strategy:   s,
		Also: []registry.Served{
			kind.Alike[admissionv1beta1.MutatingAdmissionPolicyBinding, admissionv1beta1.MutatingAdmissionPolicyBindingList, admissionv1.MutatingAdmissionPolicyBinding](admissionv1beta1.SchemeGroupVersion),
		},
	}
}
