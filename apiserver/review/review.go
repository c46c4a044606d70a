package review

import (
	"context"

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
	// Rules lists the rules that apply to a user in a namespace; the error says why there
	// may be more.
	Rules func(u user.Info, namespace string) ([]rbacv1.PolicyRule, error)
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
	rules, incomplete := c.Rules(u, r.Spec.Namespace)
	if incomplete != nil {
		r.Status.Incomplete, r.Status.EvaluationError = true, incomplete.Error()
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
