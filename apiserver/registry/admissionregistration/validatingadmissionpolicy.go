package admissionregistration

import (
	"context"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/periplus/periplus/apiserver/registry"
	"github.com/periplus/periplus/apiserver/registry/kind"
)

var validatingAdmissionPolicyHalves = kind.Split(func(obj *admissionv1.ValidatingAdmissionPolicy) (*admissionv1.ValidatingAdmissionPolicySpec, *admissionv1.ValidatingAdmissionPolicyStatus) {
	return &obj.Spec, &obj.Status
})

func validatingAdmissionPolicies() *registry.Resource {
	s := validatingAdmissionPolicyHalves.Main()
	s.DefaultFunc = func(p *admissionv1.ValidatingAdmissionPolicy) {
		set(&p.Spec.FailurePolicy, admissionv1.Fail)
		matchResources(p.Spec.MatchConstraints)
	}
	s.ValidateCreate = validatePolicy
	s.ValidateChange = func(ctx context.Context, p, _ *admissionv1.ValidatingAdmissionPolicy) field.ErrorList {
		return validatePolicy(ctx, p)
	}
	s.Fixed.NoUnconditionalUpdate = true
	status := validatingAdmissionPolicyHalves.StatusKeepingMeta()
	status.ValidateChange = func(_ context.Context, p, _ *admissionv1.ValidatingAdmissionPolicy) field.ErrorList {
		return policyStatus(&p.Status)
	}
	return &registry.Resource{
		GVR:        version.WithResource("validatingadmissionpolicies"),
		Kind:       "ValidatingAdmissionPolicy",
		Singular:   "validatingadmissionpolicy",
		Categories: []string{"api-extensions"},
		New:        kind.Make[admissionv1.ValidatingAdmissionPolicy],
		NewList:    kind.Make[admissionv1.ValidatingAdmissionPolicyList],
		Strategy:   s,
		Status:     status,
	}
}
