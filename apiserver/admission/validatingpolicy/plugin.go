package validatingpolicy

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	upstream "k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/periplus/periplus/apiserver/admission"
	"github.com/periplus/periplus/apiserver/request"
)

type plugin struct {
	objects Objects
	index   *index
}

var _ admission.Validator = (*plugin)(nil)

// New returns the plug-in.
func New(objects Objects) admission.Plugin {
	return &plugin{objects, &index{objects: objects, versions: [2]int64{-1, -1}}}
}

func (*plugin) Name() string { return "ValidatingAdmissionPolicy" }

// Validate implements admission.Validator.
func (p *plugin) Validate(ctx context.Context, a *admission.Attributes) error {
	list := p.index.policies()
	if len(list) == 0 || admission.Exempt(a) || a.Forms == nil {
		return nil
	}
	var refused error
	for _, policy := range list {
		m, err := policy.about.Match(a, p.objects)
		if err != nil {
			return err
		}
		if m == nil {
			continue
		}
		start, answer := time.Now(), "allowed"
		if err := p.policy(ctx, a, m, policy); err != nil {
			answer = "refused"
			if refused == nil {
				refused = err
			}
		}
		if a.Record != nil {
			a.Record("policy "+policy.Name, start, "answer", answer)
		}
	}
	return refused
}

// policy evaluates one policy by all its bindings; the first denial is the answer.
func (p *plugin) policy(ctx context.Context, a *admission.Attributes, m *admission.Match, policy *policy) error {
	var attributes *upstream.VersionedAttributes
	var refused error
	deny := func(b *binding, v violation) {
		if refused == nil {
			refused = denial(a, policy.Name, b.Name, v)
		}
	}
	for i := range policy.bindings {
		b := &policy.bindings[i]
		if b.about != nil {
			if within, err := b.about.Match(a, p.objects); err != nil || within == nil {
				if err != nil {
					return err
				}
				continue
			}
		}
		params, err := p.params(a, policy, b)
		if err != nil {
			for _, v := range policy.program().failed(fmt.Errorf("failed to configure binding: %w", err)) {
				deny(b, v)
			}
			continue
		}
		if attributes == nil {
			if attributes, err = versioned(a, m); err != nil {
				return apierrors.NewInternalError(err)
			}
		}
		namespace, err := p.namespace(a)
		if err != nil {
			return err
		}
		question := cel.CreateAdmissionRequest(attributes.Attributes, metav1.GroupVersionResource(m.Resource), metav1.GroupVersionKind(m.Kind))
		for _, param := range params {
			for _, v := range policy.program().evaluate(ctx, attributes, question, param, namespace, a.Authorizer) {
				for _, action := range b.Spec.ValidationActions {
					switch action {
					case admissionregistrationv1.Deny:
						deny(b, v)
					case admissionregistrationv1.Warn:
						request.Warn(ctx, fmt.Sprintf("Validation failed for ValidatingAdmissionPolicy '%s' with binding '%s': %s", policy.Name, b.Name, v.message))
					}
				}
			}
		}
	}
	return refused
}

// versioned shows a write to expressions, in the version of m.
func versioned(a *admission.Attributes, m *admission.Match) (*upstream.VersionedAttributes, error) {
	object, old, err := a.Values(m)
	if err != nil {
		return nil, err
	}
	who := a.User
	if who == nil {
		who = &user.DefaultInfo{}
	}
	return &upstream.VersionedAttributes{
		Attributes: upstream.NewAttributesRecord(object, old, m.Kind, a.Namespace, a.Name, m.Resource, a.Subresource,
			upstream.Operation(a.Operation), a.Options, a.DryRun, who),
		VersionedKind: m.Kind, VersionedObject: upstream.NewLazyObject(object), VersionedOldObject: upstream.NewLazyObject(old),
	}, nil
}

var namespaces = corev1.SchemeGroupVersion.WithResource("namespaces")

// namespace is the one of the object, nil for objects of the cluster.
func (p *plugin) namespace(a *admission.Attributes) (*corev1.Namespace, error) {
	if a.Namespace == "" || a.Resource == namespaces {
		return nil, nil
	}
	obj, err := p.objects.Get(namespaces, "", a.Namespace)
	if err != nil {
		return nil, err
	}
	return obj.(*corev1.Namespace), nil
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

// nothing is what a policy without parameters is evaluated with.
var nothing = []runtime.Object{nil}
