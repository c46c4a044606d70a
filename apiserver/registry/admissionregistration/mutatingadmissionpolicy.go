package admissionregistration

import (
	"context"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	admissionv1beta1 "k8s.io/api/admissionregistration/v1beta1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/periplus/periplus/apiserver/registry"
	"github.com/periplus/periplus/apiserver/registry/kind"
)

func mutatingAdmissionPolicies() *registry.Resource {
	s := kind.Counted(func(obj *admissionv1.MutatingAdmissionPolicy) *admissionv1.MutatingAdmissionPolicySpec {
		return &obj.Spec
	})
	s.DefaultFunc = func(p *admissionv1.MutatingAdmissionPolicy) {
		set(&p.Spec.FailurePolicy, admissionv1.Fail)
		matchResources(p.Spec.MatchConstraints)
	}
	s.ValidateCreate = validateMutatingPolicy
	s.ValidateChange = func(ctx context.Context, obj, _ *admissionv1.MutatingAdmissionPolicy) field.ErrorList {
		return validateMutatingPolicy(ctx, obj)
	}
	s.Fixed.NoUnconditionalUpdate = true
	return &registry.Resource{
		GVR:        version.WithResource("mutatingadmissionpolicies"),
		Kind:       "MutatingAdmissionPolicy",
		Singular:   "mutatingadmissionpolicy",
		Categories: []string{"api-extensions"},
		New:        kind.Make[admissionv1.MutatingAdmissionPolicy],
		NewList:    kind.Make[admissionv1.MutatingAdmissionPolicyList],
		Strategy:   s,
		Also: []registry.Served{
			kind.Alike[admissionv1beta1.MutatingAdmissionPolicy, admissionv1beta1.MutatingAdmissionPolicyList, admissionv1.MutatingAdmissionPolicy](admissionv1beta1.SchemeGroupVersion),
		},
	}
}
