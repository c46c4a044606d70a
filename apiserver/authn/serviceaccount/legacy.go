package serviceaccount

import (
	"context"
	"crypto"
	"crypto/subtle"
	"errors"
	"fmt"
	"time"

	"github.com/golang-jwt/jwt/v5"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
)

const (
	legacyIssuer = "kubernetes/serviceaccount"
	// LastUsed is the label with the day on which a Secret's token was last used,
	// InvalidSince that from which on it is not accepted any more.
	LastUsed     = "kubernetes.io/legacy-token-last-used"
	InvalidSince = "kubernetes.io/legacy-token-invalid-since"
	// Day is the form of these labels.
	Day = "2006-01-02"
)

// legacy are the claims of a token in a Secret.
type legacy struct {
	Namespace  string    `json:"kubernetes.io/serviceaccount/namespace,omitempty"`
	SecretName string    `json:"kubernetes.io/serviceaccount/secret.name,omitempty"`
	Account    string    `json:"kubernetes.io/serviceaccount/service-account.name,omitempty"`
	AccountUID types.UID `json:"kubernetes.io/serviceaccount/service-account.uid,omitempty"`
}

func (c *claims) isLegacy() bool { return c.Issuer == legacyIssuer }

// IssueLegacy returns a token for a Secret: without an expiry, valid as long as the
// Secret and the account exist.
func IssueLegacy(signer crypto.Signer, account *corev1.ServiceAccount, secret string) (string, error) {
	own, err := KeyOf(signer.Public())
	if err != nil {
		return "", err
	}
	t := &Tokens{signer: signer, own: own}
	return t.sign(claims{
		RegisteredClaims: jwt.RegisteredClaims{Issuer: legacyIssuer, Subject: serviceaccount.MakeUsername(account.Namespace, account.Name)},
		legacy:           legacy{Namespace: account.Namespace, SecretName: secret, Account: account.Name, AccountUID: account.UID},
	})
}

// checkLegacy returns the owner of a token in a Secret that still holds it.
func (t *Tokens) checkLegacy(ctx context.Context, raw string, l *legacy) (*serviceaccount.ServiceAccountInfo, error) {
	switch {
	case l.Namespace == "":
		return nil, errors.New("namespace is missing from the claims")
	case l.SecretName == "":
		return nil, errors.New("secretName is missing from the claims")
	case l.Account == "":
		return nil, errors.New("serviceAccountName is missing from the claims")
	case l.AccountUID == "":
		return nil, errors.New("serviceAccountUID is missing from the claims")
	}
	obj, err := t.config.Objects.Get(secrets, l.Namespace, l.SecretName)
	if err != nil {
		return nil, errors.New("token has been invalidated")
	}
	s := obj.(*corev1.Secret)
	now := t.config.Now()
	if s.DeletionTimestamp != nil && s.DeletionTimestamp.Time.Before(now.Add(-deletionLeeway)) {
		return nil, errors.New("token has been invalidated")
	}
	if subtle.ConstantTimeCompare(s.Data[corev1.ServiceAccountTokenKey], []byte(raw)) != 1 {
		return nil, errors.New("token does not match server's copy")
	}
	if since := s.Labels[InvalidSince]; since != "" {
		return nil, fmt.Errorf("the token in secret %s/%s for service account %s/%s has been marked invalid. Use tokens from the TokenRequest API or manually created secret-based tokens, or remove the '%s' label from the secret to temporarily allow use of this token",
			l.Namespace, l.SecretName, l.Namespace, l.Account, InvalidSince)
	}
	if _, err := t.object(serviceAccounts, "service account", l.Namespace, Ref{l.Account, l.AccountUID}); err != nil {
		return nil, err
	}
	if today := now.UTC().Format(Day); t.config.Used != nil && s.Labels[LastUsed] != today && s.Labels[LastUsed] != now.UTC().Add(-time.Hour).Format(Day) {
		t.config.Used(ctx, s, today)
	}
	return &serviceaccount.ServiceAccountInfo{Namespace: l.Namespace, Name: l.Account, UID: string(l.AccountUID)}, nil
}
