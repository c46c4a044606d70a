package serviceaccount

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/golang-jwt/jwt/v5"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
)

const (
	// warnLifetime is what pods ask for by default; see Config.Extend.
	warnLifetime     = time.Hour + 7*time.Second
	extendedLifetime = 365 * 24 * time.Hour
)

// Bound says what a token is valid for.
type Bound struct {
	ServiceAccount *corev1.ServiceAccount
	Audiences      []string
	Lifetime       time.Duration
	Pod            *Ref
	Node           *Ref
	Secret         *Ref
}

// Issue returns a signed token and when its owner should replace it.
func (t *Tokens) Issue(b Bound) (string, time.Time, error) {
	if t.signer == nil {
		return "", time.Time{}, errors.New("this server has no key to sign tokens")
	}
	now := t.config.Now()
	if t.config.MaxLifetime > 0 {
		b.Lifetime = min(b.Lifetime, t.config.MaxLifetime)
	}
	audiences := b.Audiences
	if len(audiences) == 0 {
		audiences = t.config.Audiences
	}
	sa := b.ServiceAccount
	c := claims{
		RegisteredClaims: jwt.RegisteredClaims{
			Issuer: t.Issuer(), Subject: serviceaccount.MakeUsername(sa.Namespace, sa.Name), Audience: audiences,
			ID: string(uuid.NewUUID()), IssuedAt: jwt.NewNumericDate(now), NotBefore: jwt.NewNumericDate(now), ExpiresAt: jwt.NewNumericDate(now.Add(b.Lifetime)),
		},
		Kubernetes: private{
			Namespace: sa.Namespace, ServiceAccount: Ref{sa.Name, sa.UID}, Pod: b.Pod, Node: b.Node, Secret: b.Secret,
		},
	}
	replace := c.ExpiresAt.Time
	if t.config.Extend && b.Pod != nil && b.Lifetime == warnLifetime && !slices.ContainsFunc(audiences, func(a string) bool { return !slices.Contains(t.config.Audiences, a) }) {
		c.Kubernetes.WarnAfter = c.ExpiresAt
		c.ExpiresAt = jwt.NewNumericDate(now.Add(extendedLifetime))
	}
	signed, err := t.sign(c)
	if err != nil {
		return "", time.Time{}, fmt.Errorf("sign token for %s/%s: %w", sa.Namespace, sa.Name, err)
	}
	return signed, replace, nil
}

func (t *Tokens) sign(c claims) (string, error) {
	token := jwt.NewWithClaims(t.own.method, c)
	token.Header["kid"] = t.own.ID
	return token.SignedString(t.signer)
}
