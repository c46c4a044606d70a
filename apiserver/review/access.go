package review

import (
	"context"
	"reflect"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/periplus/periplus/apiserver/authz"
)

func (c Config) subject(ctx context.Context, obj runtime.Object) (runtime.Object, error) {
	r := obj.(*authorizationv1.SubjectAccessReview).DeepCopy()
	errs := append(validateSpec(&r.Spec), validateMeta(r.ObjectMeta, "must be empty")...)
	status, err := c.answer(ctx, "SubjectAccessReview", subjectOf(&r.Spec), r.Spec.ResourceAttributes, r.Spec.NonResourceAttributes, errs)
	r.Status = status
	return r, err
}

func (c Config) local(ctx context.Context, obj runtime.Object) (runtime.Object, error) {
	r := obj.(*authorizationv1.LocalSubjectAccessReview).DeepCopy()
	errs := validateSpec(&r.Spec)
	m := r.ObjectMeta
	m.Namespace = ""
	errs = append(errs, validateMeta(m, "must be empty except for namespace")...)
	if a := r.Spec.ResourceAttributes; a != nil && a.Namespace != r.Namespace {
		errs = append(errs, field.Invalid(field.NewPath("spec.resourceAttributes.namespace"), a.Namespace, "must match metadata.namespace"))
	}
	if r.Spec.NonResourceAttributes != nil {
		errs = append(errs, field.Invalid(field.NewPath("spec.nonResourceAttributes"), r.Spec.NonResourceAttributes, "disallowed on this kind of request"))
	}
	status, err := c.answer(ctx, "LocalSubjectAccessReview", subjectOf(&r.Spec), r.Spec.ResourceAttributes, r.Spec.NonResourceAttributes, errs)
	r.Status = status
	return r, err
}

func (c Config) selfAccess(ctx context.Context, obj runtime.Object) (runtime.Object, error) {
	u, err := caller(ctx)
	if err != nil {
		return nil, err
	}
	r := obj.(*authorizationv1.SelfSubjectAccessReview).DeepCopy()
	errs := append(validateAttributes(r.Spec.ResourceAttributes, r.Spec.NonResourceAttributes), validateMeta(r.ObjectMeta, "must be empty")...)
	r.Status, err = c.answer(ctx, "SelfSubjectAccessReview", u, r.Spec.ResourceAttributes, r.Spec.NonResourceAttributes, errs)
	return r, err
}

func subjectOf(spec *authorizationv1.SubjectAccessReviewSpec) user.Info {
	u := &user.DefaultInfo{Name: spec.User, UID: spec.UID, Groups: spec.Groups}
	if spec.Extra != nil {
		u.Extra = make(map[string][]string, len(spec.Extra))
	}
	for k, v := range spec.Extra {
		u.Extra[k] = v
	}
	return u
}

// answer decides what a review asks, unless it is invalid.
func (c Config) answer(ctx context.Context, kind string, u user.Info, res *authorizationv1.ResourceAttributes, non *authorizationv1.NonResourceAttributes, errs field.ErrorList) (authorizationv1.SubjectAccessReviewStatus, error) {
	if len(errs) > 0 {
		return authorizationv1.SubjectAccessReviewStatus{}, apierrors.NewInvalid(authorizationv1.SchemeGroupVersion.WithKind(kind).GroupKind(), "", errs)
	}
	var doubts []string
	q := &authz.Question{User: u}
	if res != nil {
		q.IsResource, q.Verb, q.Group, q.Version = true, res.Verb, res.Group, res.Version
		q.Resource, q.Subresource, q.Namespace, q.Name = res.Resource, res.Subresource, res.Namespace, res.Name
		if q.Version == "" {
			q.Version = "*"
		}
		var doubt string
		if q.FieldSelector, doubt = fieldSelector(res.FieldSelector); doubt != "" {
			doubts = append(doubts, doubt)
		}
		if q.LabelSelector, doubt = labelSelector(res.LabelSelector); doubt != "" {
			doubts = append(doubts, doubt)
		}
	} else {
		q.Verb, q.Path = non.Verb, non.Path
	}
	d, reason, err := c.Authz.Authorize(ctx, q)
	if err != nil {
		doubts = append([]string{err.Error()}, doubts...)
	}
	return authorizationv1.SubjectAccessReviewStatus{
		Allowed: d == authz.Allow, Denied: d == authz.Deny, Reason: reason, EvaluationError: strings.Join(doubts, "; "),
	}, nil
}

func validateMeta(m metav1.ObjectMeta, problem string) field.ErrorList {
	m.ManagedFields = nil
	if reflect.DeepEqual(m, metav1.ObjectMeta{}) {
		return nil
	}
	return field.ErrorList{field.Invalid(field.NewPath("metadata"), m, problem)}
}

func validateSpec(spec *authorizationv1.SubjectAccessReviewSpec) field.ErrorList {
	errs := validateAttributes(spec.ResourceAttributes, spec.NonResourceAttributes)
	if spec.User == "" && len(spec.Groups) == 0 {
		errs = append(errs, field.Invalid(field.NewPath("spec", "user"), spec.User, "at least one of user or group must be specified"))
	}
	return errs
}

func validateAttributes(res *authorizationv1.ResourceAttributes, non *authorizationv1.NonResourceAttributes) field.ErrorList {
	var errs field.ErrorList
	if (res == nil) == (non == nil) {
		errs = append(errs, field.Invalid(field.NewPath("spec"), non, "exactly one of nonResourceAttributes or resourceAttributes must be specified"))
	}
	if res != nil {
		at := field.NewPath("spec.resourceAttributes")
		errs = append(errs, validateFieldSelector(res.FieldSelector, at.Child("fieldSelector"))...)
		errs = append(errs, validateLabelSelector(res.LabelSelector, at.Child("labelSelector"))...)
	}
	return errs
}
