package bootstrap

import (
	"context"
	"crypto/subtle"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/periplus/periplus/apiserver/registry"
	"github.com/periplus/periplus/base/jointoken"
)

// What a bootstrap token is made of.
const (
	prefix     = "bootstrap-token-"
	secretType = corev1.SecretType("bootstrap.kubernetes.io/token")
	userPrefix = "system:bootstrap:"
	group      = "system:bootstrappers"
)

var secrets = corev1.SchemeGroupVersion.WithResource("secrets")

// Tokens accepts bootstrap tokens.
type Tokens struct {
	Objects registry.Reader
	Now     func() time.Time
}

var _ authenticator.Token = Tokens{}

// AuthenticateToken implements authenticator.Token.
func (b Tokens) AuthenticateToken(_ context.Context, raw string) (*authenticator.Response, bool, error) {
	token, err := jointoken.Parse(raw)
	if err != nil || token.CAHash != "" {
		return nil, false, nil //nolint:nilerr // another kind of token
	}
	refuse := func(why string) (*authenticator.Response, bool, error) {
		return nil, false, fmt.Errorf("bootstrap token %s %s", token.ID, why)
	}
	obj, err := b.Objects.Get(secrets, metav1.NamespaceSystem, prefix+token.ID)
	if err != nil {
		return refuse("is unknown")
	}
	s, ok := obj.(*corev1.Secret)
	if !ok || s.Type != secretType || s.DeletionTimestamp != nil || string(s.Data["token-id"]) != token.ID {
		return refuse("is not valid")
	}
	if subtle.ConstantTimeCompare(s.Data["token-secret"], []byte(token.Secret)) != 1 {
		return refuse("has another secret")
	}
	if text := string(s.Data["expiration"]); text != "" {
		if until, err := time.Parse(time.RFC3339, text); err != nil || !b.Now().Before(until) {
			return refuse("has expired")
		}
	}
	if string(s.Data["usage-bootstrap-authentication"]) != "true" {
		return refuse("is not for authentication")
	}
	groups := []string{group}
	for g := range strings.SplitSeq(string(s.Data["auth-extra-groups"]), ",") {
		if g = strings.TrimSpace(g); strings.HasPrefix(g, group+":") {
			groups = append(groups, g)
		}
	}
	return &authenticator.Response{User: &user.DefaultInfo{Name: userPrefix + token.ID, Groups: groups}}, true, nil
}
