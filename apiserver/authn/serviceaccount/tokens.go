package serviceaccount

import (
	"context"
	"crypto"
	"errors"
	"time"

	"github.com/golang-jwt/jwt/v5"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/lru"

	"github.com/periplus/periplus/apiserver/measure"
	"github.com/periplus/periplus/apiserver/registry"
)

// A Ref names an object inside a token.
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
	legacy
}

// Tokens issues and checks service account tokens. Make it with New.
type Tokens struct {
	config Config
	keys   Keys
	signer crypto.Signer
	own    Key // the signer's

	// verified remembers the claims of tokens whose signatures were right.
	verified *lru.Cache
}

// Config is what Tokens are made of.
type Config struct {
	// Issuers are the names of the issuer that are accepted; tokens are issued by the first.
	Issuers []string
	// Audiences are those of the API server: accepted, and given when none is asked for.
	Audiences []string
	// Signer signs; its key verifies, too. nil: no tokens are issued.
	Signer crypto.Signer
	// Keys verify.
	Keys Keys
	// Objects show whether what a token is bound to still exists.
	Objects registry.Reader
	// Used is told of Secrets whose tokens are used for the first time on a day; may be nil.
	Used func(ctx context.Context, secret *corev1.Secret, day string)
	// MaxLifetime bounds the lifetime of tokens; 0 does not.
	MaxLifetime time.Duration
	// Extend lets the tokens that pods get by default live for a year: clients that do
	// not read the file again are told of, not locked out.
	Extend bool
	Now    func() time.Time
	// Metrics count uses; may be nil.
	Metrics *measure.Metrics
}

// remembered bounds how many tokens' signatures are remembered.
const remembered = 4096

// New returns what issues and checks tokens.
func New(c Config) (*Tokens, error) {
	if len(c.Issuers) == 0 {
		return nil, errors.New("service account tokens need an issuer")
	}
	if len(c.Audiences) == 0 {
		c.Audiences = c.Issuers
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	t := &Tokens{config: c, keys: c.Keys, signer: c.Signer, verified: lru.New(remembered)}
	if c.Signer != nil {
		var err error
		if t.own, err = KeyOf(c.Signer.Public()); err != nil {
			return nil, err
		}
		t.keys = t.keys.With(t.own)
	}
	return t, nil
}

// Keys are those that verify tokens.
func (t *Tokens) Keys() Keys { return t.keys }

// Issuer is by whom tokens are issued.
func (t *Tokens) Issuer() string { return t.config.Issuers[0] }

// Audiences are those of the API server.
func (t *Tokens) Audiences() []string { return t.config.Audiences }
