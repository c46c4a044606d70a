package authn

import (
	"crypto/subtle"
	"fmt"
	"net/http"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/periplus/periplus/apiserver/registry"
	"github.com/periplus/periplus/base/jointoken"
)

// What a bootstrap token is made of: a Secret in kube-system (KEP-130).
const (
	bootstrapPrefix = "bootstrap-token-"
	bootstrapType   = corev1.SecretType("bootstrap.kubernetes.io/token")
	bootstrapUser   = "system:bootstrap:"
	bootstrapGroup  = "system:bootstrappers"
)

// Bootstrap accepts the tokens with which machines join.
type Bootstrap struct {
	Objects registry.Reader
	Now     func() time.Time
}

var _ Authenticator = Bootstrap{}

// Authenticate implements Authenticator.
func (b Bootstrap) Authenticate(r *http.Request) (user.Info, bool, error) {
	token, err := jointoken.Parse(bearer(r))
	if err != nil || token.CAHash != "" {
		return nil, false, nil //nolint:nilerr // another kind of token
	}
	refuse := func(why string) (user.Info, bool, error) {
		return nil, false, fmt.Errorf("%w: bootstrap token %s %s", ErrRejected, token.ID, why)
	}
	obj, err := b.Objects.Get(secrets, metav1.NamespaceSystem, bootstrapPrefix+token.ID)
	if err != nil {
		return refuse("is unknown")
	}
	s, ok := obj.(*corev1.Secret)
	if !ok || s.Type != bootstrapType || s.DeletionTimestamp != nil || string(s.Data["token-id"]) != token.ID {
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
	groups := []string{bootstrapGroup}
	for g := range strings.SplitSeq(string(s.Data["auth-extra-groups"]), ",") {
		if g = strings.TrimSpace(g); strings.HasPrefix(g, bootstrapGroup+":") {
			groups = append(groups, g)
		}
	}
	return &user.DefaultInfo{Name: bootstrapUser + token.ID, Groups: groups}, true, nil
}
