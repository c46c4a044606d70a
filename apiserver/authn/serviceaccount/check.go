package serviceaccount

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/golang-jwt/jwt/v5"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
)

// deletionLeeway is how long tokens hold of an object that is being deleted.
const deletionLeeway = 60 * time.Second

var _ authenticator.Token = (*Tokens)(nil)

// AuthenticateToken implements authenticator.Token. Tokens of other issuers are not known.
func (t *Tokens) AuthenticateToken(ctx context.Context, raw string) (*authenticator.Response, bool, error) {
	c, err := t.claims(raw)
	if c == nil || err != nil {
		return nil, false, err
	}
	wanted, ok := authenticator.AudiencesFrom(ctx)
	if !ok {
		wanted = t.config.Audiences
	}
	if c.isLegacy() {
		// These are for the API server, and say so nowhere.
		audiences := authenticator.Audiences(t.config.Audiences).Intersect(wanted)
		if len(audiences) == 0 {
			return nil, false, fmt.Errorf("token audiences %q is invalid for the target audiences %q", t.config.Audiences, wanted)
		}
		info, err := t.checkLegacy(ctx, raw, &c.legacy)
		if err != nil {
			return nil, false, err
		}
		t.config.Metrics.LegacyToken()
		return &authenticator.Response{User: info.UserInfo(), Audiences: audiences}, true, nil
	}
	audiences := authenticator.Audiences(c.Audience).Intersect(wanted)
	if len(audiences) == 0 {
		return nil, false, fmt.Errorf("token audiences %q is invalid for the target audiences %q", []string(c.Audience), []string(wanted))
	}
	if err := t.alive(&c.Kubernetes); err != nil {
		return nil, false, err
	}
	if late := c.Kubernetes.WarnAfter; late != nil && t.config.Now().After(late.Time) {
		t.config.Metrics.StaleToken()
	} else {
		t.config.Metrics.ValidToken()
	}
	return &authenticator.Response{User: c.info().UserInfo(), Audiences: audiences}, true, nil
}

// info is who the owner of a bound token is.
func (c *claims) info() *serviceaccount.ServiceAccountInfo {
	k := &c.Kubernetes
	info := &serviceaccount.ServiceAccountInfo{Namespace: k.Namespace, Name: k.ServiceAccount.Name, UID: string(k.ServiceAccount.UID)}
	if c.ID != "" {
		info.CredentialID = "JTI=" + c.ID
	}
	if k.Pod != nil {
		info.PodName, info.PodUID = k.Pod.Name, string(k.Pod.UID)
	}
	if k.Node != nil {
		info.NodeName, info.NodeUID = k.Node.Name, string(k.Node.UID)
	}
	return info
}

// maxToken bounds what is looked at, in bytes.
const maxToken = 16 << 10

// claims verifies a token's signature and times; nil without an error: it is none of ours.
func (t *Tokens) claims(raw string) (*claims, error) {
	if len(raw) > maxToken {
		return nil, nil
	}
	key := sha256.Sum256([]byte(raw))
	if found, ok := t.verified.Get(key); ok {
		c := found.(*claims)
		return c, t.valid(c)
	}
	var c claims
	unverified, _, err := jwt.NewParser().ParseUnverified(raw, &c)
	if err != nil || unverified == nil || !slices.Contains(t.config.Issuers, c.Issuer) && !c.isLegacy() {
		return nil, nil //nolint:nilerr // not ours to judge
	}
	c = claims{}
	_, err = jwt.ParseWithClaims(raw, &c, t.keys.pick,
		jwt.WithValidMethods([]string{"RS256", "RS384", "RS512", "ES256", "ES384", "ES512"}), jwt.WithoutClaimsValidation())
	if err != nil {
		return nil, fmt.Errorf("service account token: %w", err)
	}
	t.verified.Add(key, &c)
	return &c, t.valid(&c)
}

// valid checks a token's times.
func (t *Tokens) valid(c *claims) error {
	now := t.config.Now()
	switch {
	case c.isLegacy():
		return nil // they have none
	case c.ExpiresAt == nil:
		return errors.New("service account token claims could not be validated due to a missing expiry")
	case !now.Before(c.ExpiresAt.Time):
		return errors.New("service account token has expired")
	case c.NotBefore != nil && now.Add(time.Minute).Before(c.NotBefore.Time):
		return errors.New("service account token is not valid yet")
	}
	return nil
}

var (
	serviceAccounts = corev1.SchemeGroupVersion.WithResource("serviceaccounts")
	pods            = corev1.SchemeGroupVersion.WithResource("pods")
	secrets         = corev1.SchemeGroupVersion.WithResource("secrets")
	nodes           = corev1.SchemeGroupVersion.WithResource("nodes")
)

// object returns what a token is bound to, or an error if it is gone.
func (t *Tokens) object(gvr schema.GroupVersionResource, what, namespace string, ref Ref) (metav1.Object, error) {
	obj, err := t.config.Objects.Get(gvr, namespace, ref.Name)
	if apierrors.IsNotFound(err) && gvr == secrets {
		return nil, errors.New("service account token has been invalidated")
	}
	if err != nil {
		return nil, err
	}
	m := obj.(metav1.Object)
	if at := m.GetDeletionTimestamp(); at != nil && at.Time.Before(t.config.Now().Add(-deletionLeeway)) {
		return nil, fmt.Errorf("%s has been deleted", what)
	}
	if m.GetUID() != ref.UID {
		return nil, fmt.Errorf("the token's %s UID (%s) does not match the one of %s/%s", what, ref.UID, namespace, ref.Name)
	}
	return m, nil
}

// alive checks that the account and what the token is bound to exist still.
func (t *Tokens) alive(k *private) error {
	if _, err := t.object(serviceAccounts, "service account", k.Namespace, k.ServiceAccount); err != nil {
		return err
	}
	if k.Secret != nil {
		if _, err := t.object(secrets, "secret", k.Namespace, *k.Secret); err != nil {
			return err
		}
	}
	if k.Pod != nil {
		_, err := t.object(pods, "pod", k.Namespace, *k.Pod)
		return err // its node goes with it
	}
	if k.Node != nil {
		_, err := t.object(nodes, "node", "", *k.Node)
		return err
	}
	return nil
}
