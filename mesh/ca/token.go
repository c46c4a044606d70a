package ca

import (
	"context"
	"fmt"
	"strings"

	"google.golang.org/grpc/metadata"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/periplus/periplus/mesh"
)

const (
	accountPrefix = "system:serviceaccount:"
	podNameKey    = "authentication.kubernetes.io/pod-name"
)

// A TokenAuthenticator takes callers for the service account of the bearer token
// that they bring, which must be for mesh.Audience. The API server is asked each time.
type TokenAuthenticator struct{ client kubernetes.Interface }

var _ mesh.Authenticator = (*TokenAuthenticator)(nil)

// NewTokenAuthenticator returns an authenticator that makes TokenReviews.
func NewTokenAuthenticator(c kubernetes.Interface) *TokenAuthenticator {
	return &TokenAuthenticator{client: c}
}

// Authenticate implements mesh.Authenticator.
func (a *TokenAuthenticator) Authenticate(ctx context.Context) (mesh.Caller, error) {
	token := bearer(ctx)
	if token == "" {
		return mesh.Caller{}, fmt.Errorf("%w: the call has no bearer token", mesh.ErrUnauthenticated)
	}
	review, err := a.client.AuthenticationV1().TokenReviews().Create(ctx, &authenticationv1.TokenReview{
		Spec: authenticationv1.TokenReviewSpec{Token: token, Audiences: []string{mesh.Audience}},
	}, metav1.CreateOptions{})
	if err != nil {
		return mesh.Caller{}, fmt.Errorf("review the caller's token: %w", err)
	}
	if s := review.Status; !s.Authenticated {
		why := s.Error
		if why == "" {
			why = "the token is not valid for the audience " + mesh.Audience
		}
		return mesh.Caller{}, fmt.Errorf("%w: %s", mesh.ErrUnauthenticated, why)
	}
	user := review.Status.User
	rest, ok := strings.CutPrefix(user.Username, accountPrefix)
	namespace, account, two := strings.Cut(rest, ":")
	if !ok || !two || namespace == "" || account == "" {
		return mesh.Caller{}, fmt.Errorf("%w: %s is not a service account", mesh.ErrUnauthenticated, user.Username)
	}
	c := mesh.Caller{Identity: mesh.Identity{TrustDomain: mesh.TrustDomain, Namespace: namespace, ServiceAccount: account}}
	if pods := user.Extra[podNameKey]; len(pods) > 0 {
		c.Pod = pods[0]
	}
	return c, nil
}

// bearer is the token of the call; empty: none.
func bearer(ctx context.Context) string {
	md, _ := metadata.FromIncomingContext(ctx)
	for _, v := range md.Get("authorization") {
		const scheme = "Bearer "
		if len(v) > len(scheme) && strings.EqualFold(v[:len(scheme)], scheme) {
			return strings.TrimSpace(v[len(scheme):])
		}
	}
	return ""
}
