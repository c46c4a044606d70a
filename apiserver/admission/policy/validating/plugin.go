package validating

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	upstream "k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/plugin/cel"

	"github.com/periplus/periplus/apiserver/admission"
	"github.com/periplus/periplus/apiserver/admission/policy"
	"github.com/periplus/periplus/apiserver/request"
)

type plugin struct {
	objects policy.Objects
	index   *index
}

var _ admission.Validator = (*plugin)(nil)

// New returns the plug-in.
func New(objects policy.Objects) admission.Plugin {
	return &plugin{objects, policy.NewIndex(objects, kind)}
}

func (*plugin) Name() string { return "ValidatingAdmissionPolicy" }

// Validate implements admission.Validator.
func (p *plugin) Validate(ctx context.Context, a *admission.Attributes) error {
	list := p.index.Bound()
	if len(list) == 0 || admission.Exempt(a) || a.Forms == nil {
		return nil
	}
	var refused error
	var told record
	defer func() { told.publish(ctx) }()
	for _, b := range list {
		m, err := b.Match(a, p.objects)
		if err != nil {
			return err
		}
		if m == nil {
			continue
		}
		start, answer := time.Now(), "allowed"
		if err := p.policy(ctx, a, m, b, &told); err != nil {
			answer = "refused"
			if refused == nil {
				refused = err
			}
		}
		if a.Record != nil {
			a.Record("policy "+b.Policy.Name, start, "answer", answer)
		}
	}
	return refused
}

// policy evaluates one policy by all its bindings; the first denial is the answer.
func (p *plugin) policy(ctx context.Context, a *admission.Attributes, m *admission.Match, rules *bound, told *record) error {
	var attributes *upstream.VersionedAttributes
	var refused error
	deny := func(b *binding, v violation) {
		if refused == nil {
			refused = denial(a, rules.Policy.Name, b.Object.Name, v)
		}
	}
	bindings, err := rules.In(a, p.objects)
	if err != nil {
		return err
	}
	for _, b := range bindings {
		params, err := policy.Params(p.objects, a, rules.Policy.Spec.ParamKind, b.Params)
		if err != nil {
			for _, v := range rules.Program().failed(fmt.Errorf("failed to configure binding: %w", err)) {
				deny(b, v)
			}
			continue
		}
		if attributes == nil {
			if attributes, err = policy.Versioned(a, m); err != nil {
				return apierrors.NewInternalError(err)
			}
		}
		namespace, err := policy.NamespaceOf(p.objects, a)
		if err != nil {
			return err
		}
		question := cel.CreateAdmissionRequest(attributes.Attributes, metav1.GroupVersionResource(m.Resource), metav1.GroupVersionKind(m.Kind))
		for _, param := range params {
			began := time.Now()
			violations, notes := rules.Program().evaluate(ctx, attributes, question, param, namespace, a.Authorizer)
			told.add(rules.Policy.Name, notes)
			for _, v := range violations {
				for _, action := range b.Object.Spec.ValidationActions {
					request.Metrics(ctx).Checked(rules.Policy.Name, b.Object.Name, policy.ErrorKind(v.failed), strings.ToLower(string(action)), time.Since(began))
					switch action {
					case admissionregistrationv1.Deny:
						deny(b, v)
					case admissionregistrationv1.Warn:
						request.Warn(ctx, fmt.Sprintf("Validation failed for ValidatingAdmissionPolicy '%s' with binding '%s': %s", rules.Policy.Name, b.Object.Name, v.message))
					case admissionregistrationv1.Audit:
						told.failures = append(told.failures, failure{v.message, rules.Policy.Name, b.Object.Name, v.index, b.Object.Spec.ValidationActions})
					}
				}
			}
		}
	}
	return refused
}

// denial is the client's answer, in upstream's words.
func denial(a *admission.Attributes, policy, binding string, v violation) error {
	text := fmt.Sprintf("ValidatingAdmissionPolicy '%s' with binding '%s' denied request: %s", policy, binding, v.message)
	err := apierrors.NewForbidden(a.Resource.GroupResource(), a.Name, errors.New(text))
	if v.reason == "" {
		v.reason = metav1.StatusReasonInvalid
	}
	err.ErrStatus.Reason, err.ErrStatus.Code = v.reason, code(v.reason)
	err.ErrStatus.Details.Causes = append(err.ErrStatus.Details.Causes, metav1.StatusCause{Message: text})
	return err
}

func code(r metav1.StatusReason) int32 {
	switch r {
	case metav1.StatusReasonForbidden:
		return http.StatusForbidden
	case metav1.StatusReasonUnauthorized:
		return http.StatusUnauthorized
	case metav1.StatusReasonRequestEntityTooLarge:
		return http.StatusRequestEntityTooLarge
	}
	return http.StatusUnprocessableEntity
}
