package authn

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/golang-jwt/jwt/v5"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/periplus/periplus/apiserver/registry"
)

// Ref names an object inside a token.
type Ref struct {
	Name string    `json:"name"`
	UID  types.UID `json:"uid,omitempty"`
}

// private is the claim "kubernetes.io" of a bound token.
type private struct {
	Namespace      string           `json:"namespace,omitempty"`
	ServiceAccount Ref              `json:"serviceaccount,omitzero"`
	Pod            *Ref             `json:"pod,omitempty"`
	Node           *Ref             `json:"node,omitempty"`
	Secret         *Ref             `json:"secret,omitempty"`
	WarnAfter      *jwt.NumericDate `json:"warnafter,omitempty"`
}

type claims struct {
	jwt.RegisteredClaims
	Kubernetes private `json:"kubernetes.io,omitzero"`
}

// Tokens issues and checks service account tokens (KEP-1205), signed with ES256.
type Tokens struct {
	Issuer    string
	Audiences []string // accepted, and given when none is asked for
	Key       *ecdsa.PrivateKey
	Objects   registry.Reader // to check that what a token is bound to still exists
	Now       func() time.Time
}

// Bound says what a token is valid for.
type Bound struct {
	ServiceAccount *corev1.ServiceAccount
	Audiences      []string
	Lifetime       time.Duration
	Pod            *Ref
	Node           *Ref
	Secret         *Ref
}

// Issue returns a signed token and its expiry.
func (t *Tokens) Issue(b Bound) (string, time.Time, error) {
	now := t.Now()
	audiences := b.Audiences
	if len(audiences) == 0 {
		audiences = t.Audiences
	}
	expires := now.Add(b.Lifetime)
	sa := b.ServiceAccount
	token := jwt.NewWithClaims(jwt.SigningMethodES256, claims{
		RegisteredClaims: jwt.RegisteredClaims{
			Issuer: t.Issuer, Subject: serviceaccount.MakeUsername(sa.Namespace, sa.Name), Audience: audiences,
			ID: string(uuid.NewUUID()), IssuedAt: jwt.NewNumericDate(now), NotBefore: jwt.NewNumericDate(now), ExpiresAt: jwt.NewNumericDate(expires),
		},
		Kubernetes: private{
			Namespace: sa.Namespace, ServiceAccount: Ref{sa.Name, sa.UID}, Pod: b.Pod, Node: b.Node, Secret: b.Secret,
		},
	})
	id, err := KeyID(&t.Key.PublicKey)
	if err != nil {
		return "", time.Time{}, err
	}
	token.Header["kid"] = id
	signed, err := token.SignedString(t.Key)
	if err != nil {
		return "", time.Time{}, fmt.Errorf("sign token for %s/%s: %w", sa.Namespace, sa.Name, err)
	}
	return signed, expires, nil
}

// KeyID is how keys are named in tokens and in the JWKS document: the base64 of
// the SHA-256 of the public key in PKIX form.
func KeyID(key crypto.PublicKey) (string, error) {
	der, err := x509.MarshalPKIXPublicKey(key)
	if err != nil {
		return "", fmt.Errorf("name the public key: %w", err)
	}
	sum := sha256.Sum256(der)
	return base64.RawURLEncoding.EncodeToString(sum[:]), nil
}

// Authenticate implements Authenticator for bearer tokens.
func (t *Tokens) Authenticate(r *http.Request) (user.Info, bool, error) {
	raw := bearer(r)
	if raw == "" {
		return nil, false, nil
	}
	u, _, err := t.Check(raw, t.Audiences)
	if errors.Is(err, errNotOurs) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, errors.Join(ErrRejected, err)
	}
	return u, true, nil
}

// errNotOurs is returned for tokens of another issuer.
var errNotOurs = errors.New("the token is not a service account token of this cluster")

// Check verifies a token for one of the wanted audiences and returns the user
// and the audiences that match.
func (t *Tokens) Check(raw string, wanted []string) (user.Info, []string, error) {
	var c claims
	unverified, _, err := jwt.NewParser().ParseUnverified(raw, &c)
	if err != nil || c.Issuer != t.Issuer || unverified == nil {
		return nil, nil, errNotOurs
	}
	c = claims{}
	_, err = jwt.ParseWithClaims(raw, &c, func(*jwt.Token) (any, error) { return &t.Key.PublicKey, nil },
		jwt.WithValidMethods([]string{"ES256"}), jwt.WithTimeFunc(t.Now), jwt.WithExpirationRequired(), jwt.WithIssuer(t.Issuer))
	if err != nil {
		return nil, nil, fmt.Errorf("service account token: %w", err)
	}
	var matched []string
	for _, a := range c.Audience {
		if slices.Contains(wanted, a) {
			matched = append(matched, a)
		}
	}
	if len(matched) == 0 {
		return nil, nil, fmt.Errorf("token audiences %q is invalid for the target audiences %q", []string(c.Audience), wanted)
	}
	if err := t.alive(&c.Kubernetes); err != nil {
		return nil, nil, err
	}
	k := c.Kubernetes
	info := &serviceaccount.ServiceAccountInfo{
		Namespace: k.Namespace, Name: k.ServiceAccount.Name, UID: string(k.ServiceAccount.UID),
		CredentialID: "JTI=" + c.ID,
	}
	if k.Pod != nil {
		info.PodName, info.PodUID = k.Pod.Name, string(k.Pod.UID)
	}
	if k.Node != nil {
		info.NodeName, info.NodeUID = k.Node.Name, string(k.Node.UID)
	}
	return info.UserInfo(), matched, nil
}

var (
	serviceAccounts = schema.GroupVersionResource{Version: "v1", Resource: "serviceaccounts"}
	pods            = schema.GroupVersionResource{Version: "v1", Resource: "pods"}
	secrets         = schema.GroupVersionResource{Version: "v1", Resource: "secrets"}
)

// alive checks that the account and what the token is bound to exist still.
func (t *Tokens) alive(k *private) error {
	check := func(gvr schema.GroupVersionResource, ref *Ref) error {
		if ref == nil {
			return nil
		}
		obj, err := t.Objects.Get(gvr, k.Namespace, ref.Name)
		if err != nil {
			return fmt.Errorf("the token's %s %s/%s is gone", strings.TrimSuffix(gvr.Resource, "s"), k.Namespace, ref.Name)
		}
		meta := obj.(interface{ GetUID() types.UID })
		if meta.GetUID() != ref.UID {
			return fmt.Errorf("the token's %s UID (%s) does not match the one of %s/%s", strings.TrimSuffix(gvr.Resource, "s"), ref.UID, k.Namespace, ref.Name)
		}
		return nil
	}
	return errors.Join(check(serviceAccounts, &k.ServiceAccount), check(pods, k.Pod), check(secrets, k.Secret))
}
