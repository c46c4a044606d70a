package review

import (
	"context"
	"fmt"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/periplus/periplus/apiserver/authz"
	"github.com/periplus/periplus/apiserver/request"
)

// Config is what the answers come from.
type Config struct {
	Tokens authenticator.Token
	// Audiences are the API server's own.
	Audiences []string
	Authz     authz.Mode
	// Rules lists the rules that apply to a user in a namespace.
	Rules func(u user.Info, namespace string) []rbacv1.PolicyRule
}

// A Func answers one review.
type Func func(ctx context.Context, obj runtime.Object) (runtime.Object, error)

// Funcs returns the answers by resource.
func Funcs(c Config) map[schema.GroupVersionResource]Func {
	return map[schema.GroupVersionResource]Func{
		authenticationv1.SchemeGroupVersion.WithResource("tokenreviews"):             c.token,
		authenticationv1.SchemeGroupVersion.WithResource("selfsubjectreviews"):       c.self,
		authorizationv1.SchemeGroupVersion.WithResource("subjectaccessreviews"):      c.subject,
		authorizationv1.SchemeGroupVersion.WithResource("localsubjectaccessreviews"): c.local,
		authorizationv1.SchemeGroupVersion.WithResource("selfsubjectaccessreviews"):  c.selfAccess,
		authorizationv1.SchemeGroupVersion.WithResource("selfsubjectrulesreviews"):   c.rules,
	}
}

func (c Config) token(ctx context.Context, obj runtime.Object) (runtime.Object, error) {
	r := obj.(*authenticationv1.TokenReview).DeepCopy()
	if r.Spec.Token == "" {
		return nil, apierrors.NewBadRequest("token is required for TokenReview in authentication")
	}
	audiences := r.Spec.Audiences
	if len(audiences) == 0 {
		audiences = c.Audiences
	}
	resp, ok, err := c.Tokens.AuthenticateToken(authenticator.WithAudiences(ctx, audiences), r.Spec.Token)
	switch {
	case err != nil:
		r.Status = authenticationv1.TokenReviewStatus{Error: err.Error()}
	case ok && resp != nil && resp.User != nil:
		r.Status = authenticationv1.TokenReviewStatus{Authenticated: true, User: infoOf(resp.User), Audiences: resp.Audiences}
		r.Status.User.Groups = append(r.Status.User.Groups, user.AllAuthenticated)
	default:
		r.Status = authenticationv1.TokenReviewStatus{Error: "invalid bearer token"}
	}
	return r, nil
}

func infoOf(u user.Info) authenticationv1.UserInfo {
	out := authenticationv1.UserInfo{Username: u.GetName(), UID: u.GetUID(), Groups: append([]string(nil), u.GetGroups()...)}
	for k, v := range u.GetExtra() {
		if out.Extra == nil {
			out.Extra = map[string]authenticationv1.ExtraValue{}
		}
		out.Extra[k] = v
	}
	return out
}

func caller(ctx context.Context) (user.Info, error) {
	if s := request.From(ctx); s != nil && s.User != nil {
		return s.User, nil
	}
	return nil, apierrors.NewBadRequest("no user present on request")
}

func (c Config) self(ctx context.Context, obj runtime.Object) (runtime.Object, error) {
	u, err := caller(ctx)
	if err != nil {
		return nil, err
	}
	r := obj.(*authenticationv1.SelfSubjectReview).DeepCopy()
	r.Status.UserInfo = infoOf(u)
	return r, nil
}

// question makes an authorization question of a review's spec.
func question(u user.Info, res *authorizationv1.ResourceAttributes, non *authorizationv1.NonResourceAttributes) (*authz.Question, error) {
	switch {
	case res != nil && non != nil:
		return nil, apierrors.NewBadRequest("spec: cannot specify both resourceAttributes and nonResourceAttributes")
	case res != nil:
		return &authz.Question{User: u, Verb: res.Verb, IsResource: true, Group: res.Group, Version: res.Version,
			Resource: res.Resource, Subresource: res.Subresource, Namespace: res.Namespace, Name: res.Name}, nil
	case non != nil:
		return &authz.Question{User: u, Verb: non.Verb, Path: non.Path}, nil
	}
	return nil, apierrors.NewBadRequest("spec: exactly one of nonResourceAttributes or resourceAttributes must be specified")
}

func (c Config) decide(ctx context.Context, q *authz.Question) authorizationv1.SubjectAccessReviewStatus {
	d, reason := c.Authz.Authorize(ctx, q)
	return authorizationv1.SubjectAccessReviewStatus{Allowed: d == authz.Allow, Denied: d == authz.Deny, Reason: reason}
}

func (c Config) subject(ctx context.Context, obj runtime.Object) (runtime.Object, error) {
	r := obj.(*authorizationv1.SubjectAccessReview).DeepCopy()
	status, err := c.review(ctx, &r.Spec)
	r.Status = status
	return r, err
}

func (c Config) local(ctx context.Context, obj runtime.Object) (runtime.Object, error) {
	r := obj.(*authorizationv1.LocalSubjectAccessReview).DeepCopy()
	if a := r.Spec.ResourceAttributes; a == nil || a.Namespace != r.Namespace {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("spec.resourceAttributes.namespace must match namespace: %v", r.Namespace))
	}
	status, err := c.review(ctx, &r.Spec)
	r.Status = status
	return r, err
}

func (c Config) review(ctx context.Context, spec *authorizationv1.SubjectAccessReviewSpec) (authorizationv1.SubjectAccessReviewStatus, error) {
	if spec.User == "" && len(spec.Groups) == 0 {
		return authorizationv1.SubjectAccessReviewStatus{}, apierrors.NewBadRequest("spec.user: at least one of user or group must be specified")
	}
	u := &user.DefaultInfo{Name: spec.User, UID: spec.UID, Groups: spec.Groups, Extra: map[string][]string{}}
	for k, v := range spec.Extra {
		u.Extra[k] = v
	}
	q, err := question(u, spec.ResourceAttributes, spec.NonResourceAttributes)
	if err != nil {
		return authorizationv1.SubjectAccessReviewStatus{}, err
	}
	return c.decide(ctx, q), nil
}

func (c Config) selfAccess(ctx context.Context, obj runtime.Object) (runtime.Object, error) {
	u, err := caller(ctx)
	if err != nil {
		return nil, err
	}
	r := obj.(*authorizationv1.SelfSubjectAccessReview).DeepCopy()
	q, err := question(u, r.Spec.ResourceAttributes, r.Spec.NonResourceAttributes)
	if err != nil {
		return nil, err
	}
	r.Status = c.decide(ctx, q)
	return r, nil
}

func (c Config) rules(ctx context.Context, obj runtime.Object) (runtime.Object, error) {
	u, err := caller(ctx)
	if err != nil {
		return nil, err
	}
	r := obj.(*authorizationv1.SelfSubjectRulesReview).DeepCopy()
	if r.Spec.Namespace == "" {
		return nil, apierrors.NewBadRequest("no namespace on request")
	}
	r.Status = authorizationv1.SubjectRulesReviewStatus{ResourceRules: []authorizationv1.ResourceRule{}, NonResourceRules: []authorizationv1.NonResourceRule{}}
	rules := c.Rules(u, r.Spec.Namespace)
	for _, g := range u.GetGroups() {
		if g == user.SystemPrivilegedGroup {
			all := []string{"*"}
			rules = append(rules, rbacv1.PolicyRule{Verbs: all, APIGroups: all, Resources: all}, rbacv1.PolicyRule{Verbs: all, NonResourceURLs: all})
		}
	}
	for _, rule := range rules {
		if len(rule.Resources) > 0 {
			r.Status.ResourceRules = append(r.Status.ResourceRules, authorizationv1.ResourceRule{
				Verbs: rule.Verbs, APIGroups: rule.APIGroups, Resources: rule.Resources, ResourceNames: rule.ResourceNames})
		}
		if len(rule.NonResourceURLs) > 0 {
			r.Status.NonResourceRules = append(r.Status.NonResourceRules, authorizationv1.NonResourceRule{Verbs: rule.Verbs, NonResourceURLs: rule.NonResourceURLs})
		}
	}
	return r, nil
}
