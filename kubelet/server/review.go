package server

import (
	"context"
	"crypto/sha256"
	"errors"
	"strings"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/cache"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/client-go/kubernetes"
)

// How long answers of the API server are believed, as upstream's kubelet does.
const (
	tokenTTL    = 2 * time.Minute
	allowedTTL  = 5 * time.Minute
	deniedTTL   = 30 * time.Second
	cachedItems = 512
)

// TokenReviews authenticates bearer tokens by asking the API server.
func TokenReviews(client kubernetes.Interface) authenticator.Token {
	known := cache.NewLRUExpireCache(cachedItems)
	return authenticator.TokenFunc(func(ctx context.Context, token string) (*authenticator.Response, bool, error) {
		key := sha256.Sum256([]byte(token)) // tokens themselves are not kept
		if v, ok := known.Get(key); ok {
			if response, ok := v.(*authenticator.Response); ok {
				return response, true, nil
			}
		}
		review, err := client.AuthenticationV1().TokenReviews().Create(ctx, &authenticationv1.TokenReview{
			Spec: authenticationv1.TokenReviewSpec{Token: token},
		}, metav1.CreateOptions{})
		switch {
		case err != nil:
			return nil, false, err
		case review.Status.Error != "":
			return nil, false, errors.New(review.Status.Error)
		case !review.Status.Authenticated:
			return nil, false, nil
		}
		u := review.Status.User
		response := &authenticator.Response{User: &user.DefaultInfo{
			Name: u.Username, UID: u.UID, Groups: u.Groups, Extra: fromExtra(u.Extra),
		}}
		known.Add(key, response, tokenTTL)
		return response, true, nil
	})
}

func fromExtra[V ~[]string](in map[string]V) map[string][]string {
	out := make(map[string][]string, len(in))
	for k, v := range in {
		out[k] = v
	}
	return out
}

// SubjectAccessReviews authorizes by asking the API server.
func SubjectAccessReviews(client kubernetes.Interface) authorizer.UnconditionalAuthorizer {
	known := cache.NewLRUExpireCache(cachedItems)
	return authorizer.AuthorizerFunc(func(ctx context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
		who := a.GetUser()
		key := strings.Join(append([]string{who.GetName(), who.GetUID(), a.GetVerb(), a.GetSubresource(), a.GetName()}, who.GetGroups()...), "\x00")
		if v, ok := known.Get(key); ok {
			if d, ok := v.(authorizer.Decision); ok {
				return d, "", nil
			}
		}
		extra := make(map[string]authorizationv1.ExtraValue, len(who.GetExtra()))
		for k, v := range who.GetExtra() {
			extra[k] = v
		}
		review, err := client.AuthorizationV1().SubjectAccessReviews().Create(ctx, &authorizationv1.SubjectAccessReview{
			Spec: authorizationv1.SubjectAccessReviewSpec{
				User: who.GetName(), UID: who.GetUID(), Groups: who.GetGroups(), Extra: extra,
				ResourceAttributes: &authorizationv1.ResourceAttributes{
					Verb: a.GetVerb(), Version: a.GetAPIVersion(), Resource: a.GetResource(),
					Subresource: a.GetSubresource(), Name: a.GetName(),
				},
			},
		}, metav1.CreateOptions{})
		if err != nil {
			return authorizer.DecisionNoOpinion, "", err
		}
		decision, ttl := authorizer.DecisionNoOpinion, deniedTTL
		if review.Status.Allowed {
			decision, ttl = authorizer.DecisionAllow, allowedTTL
		}
		known.Add(key, decision, ttl)
		return decision, review.Status.Reason, nil
	})
}
