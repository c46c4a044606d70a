package all

import (
	"context"
	"crypto"
	"crypto/x509"
	"errors"
	"log/slog"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apiserver/pkg/apis/apiserver"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/request/bearertoken"
	"k8s.io/apiserver/pkg/authentication/request/websocket"

	"github.com/periplus/periplus/apiserver/authn"
	"github.com/periplus/periplus/apiserver/authn/bootstrap"
	"github.com/periplus/periplus/apiserver/authn/certificate"
	"github.com/periplus/periplus/apiserver/authn/oidc"
	"github.com/periplus/periplus/apiserver/authn/requestheader"
	"github.com/periplus/periplus/apiserver/authn/serviceaccount"
	"github.com/periplus/periplus/apiserver/authn/static"
	"github.com/periplus/periplus/apiserver/authn/webhook"
	"github.com/periplus/periplus/apiserver/measure"
	"github.com/periplus/periplus/apiserver/registry"
)

// Options say which ways there are besides client certificates, service accounts and
// bootstrap tokens, and how those are.
type Options struct {
	// Issuers of service account tokens; the first issues. Default: one of the caller's.
	Issuers []string
	// Audiences of the API server; default: the issuers.
	Audiences []string
	// Signer signs service account tokens in place of the caller's key, Keys verify them, too.
	Signer crypto.Signer
	Keys   serviceaccount.Keys
	// JWKSURI is where others find the keys; default: on this server.
	JWKSURI string
	// MaxTokenLifetime bounds service account tokens; 0 does not. ExtendTokens lets those
	// that pods get by default live longer than they say.
	MaxTokenLifetime time.Duration
	ExtendTokens     bool
	// TokenFile is a file of static tokens.
	TokenFile string
	// OIDC names one issuer, AuthenticationConfig a file that names several.
	OIDC                 oidc.Flags
	AuthenticationConfig string
	// Webhook asks a program about tokens, if its Kubeconfig is set.
	Webhook webhook.Config
	// RequestHeader believes proxies, if its CA is set.
	RequestHeader requestheader.Config
	// Anonymous is who may be anonymous; nil: everybody.
	Anonymous *apiserver.AnonymousAuthConfig
}

// Config is what an Authentication is made of.
type Config struct {
	Options
	Issuer    string // by default
	Signer    crypto.Signer
	ClientCAs *x509.CertPool
	Objects   registry.Reader
	// Metrics count uses of tokens; may be nil.
	Metrics *measure.Metrics
	// Used is told of Secrets whose tokens are used; may be nil.
	Used func(ctx context.Context, secret *corev1.Secret, day string)
	Log  *slog.Logger
}

// An Authentication is all the ways of one server. Close it.
type Authentication struct {
	authn.Chain
	// Accounts issues and checks service account tokens.
	Accounts *serviceaccount.Tokens
	// Certificates knows client certificates.
	Certificates *certificate.Authenticator
	// Tokens are all kinds of bearer tokens, for reviews.
	Tokens  authenticator.Token
	issuers *oidc.Tokens
}

// New puts the ways in order.
func New(c Config) (*Authentication, error) {
	if len(c.Issuers) == 0 {
		c.Issuers = []string{c.Issuer}
	}
	signer := c.Options.Signer
	keys := c.Keys
	if signer == nil {
		signer = c.Signer
	}
	accounts, err := serviceaccount.New(serviceaccount.Config{
		Issuers: c.Issuers, Audiences: c.Audiences, Signer: signer, Keys: keys, Objects: c.Objects, Metrics: c.Metrics, Used: c.Used,
		MaxLifetime: c.MaxTokenLifetime, Extend: c.ExtendTokens,
	})
	if err != nil {
		return nil, err
	}
	a := &Authentication{Accounts: accounts, Certificates: certificate.New(c.ClientCAs)}
	if len(c.RequestHeader.CA) > 0 {
		proxies, err := requestheader.New(c.RequestHeader)
		if err != nil {
			return nil, err
		}
		a.List = append(a.List, proxies)
		a.Forget = proxies.Forget
	}
	a.List = append(a.List, a.Certificates)

	var tokens union
	if c.TokenFile != "" {
		list, err := static.Read(c.TokenFile)
		if err != nil {
			return nil, err
		}
		tokens = append(tokens, forAPI{list, accounts.Audiences()})
	}
	tokens = append(tokens, accounts, forAPI{bootstrap.Tokens{Objects: c.Objects, Now: time.Now}, accounts.Audiences()})
	a.issuers, err = oidc.New(oidc.Config{Flags: c.OIDC, File: c.AuthenticationConfig, Reserved: c.Issuers, Anonymous: c.Anonymous, Log: c.Log})
	if err != nil {
		return nil, err
	}
	tokens = append(tokens, forAPI{a.issuers, accounts.Audiences()})
	if c.Webhook.Kubeconfig != "" {
		c.Webhook.Audiences = accounts.Audiences()
		asks, err := webhook.New(c.Webhook)
		if err != nil {
			return nil, errors.Join(err)
		}
		tokens = append(tokens, asks)
	}
	a.Tokens = tokens
	own := audience{tokens, accounts.Audiences()}
	a.List = append(a.List, bearertoken.New(own), websocket.NewProtocolAuthenticator(own))
	a.Chain.Anonymous = a.issuers.Anonymous()
	a.Guard = authn.NewGuard()
	return a, nil
}

// Reload reads the authentication configuration again, if it has changed.
func (a *Authentication) Reload() error { return a.issuers.Load() }

// Close ends what goes on in the background.
func (a *Authentication) Close() { a.issuers.Close() }

// union asks several about a token.
type union []authenticator.Token

// AuthenticateToken implements authenticator.Token.
func (u union) AuthenticateToken(ctx context.Context, token string) (*authenticator.Response, bool, error) {
	var wrong []error
	for _, a := range u {
		resp, ok, err := a.AuthenticateToken(ctx, token)
		if ok && err == nil {
			return resp, true, nil
		}
		if err != nil {
			wrong = append(wrong, err)
		}
	}
	return nil, false, errors.Join(wrong...)
}

// audience asks for tokens that are for the API server.
type audience struct {
	authenticator.Token
	audiences authenticator.Audiences
}

// AuthenticateToken implements authenticator.Token.
func (a audience) AuthenticateToken(ctx context.Context, token string) (*authenticator.Response, bool, error) {
	return a.Token.AuthenticateToken(authenticator.WithAudiences(ctx, a.audiences), token)
}

// forAPI is for tokens that know of no audience: they are for the API server and nobody else.
type forAPI struct {
	authenticator.Token
	audiences authenticator.Audiences
}

// AuthenticateToken implements authenticator.Token.
func (f forAPI) AuthenticateToken(ctx context.Context, token string) (*authenticator.Response, bool, error) {
	wanted, limited := authenticator.AudiencesFrom(ctx)
	matched := f.audiences.Intersect(wanted)
	if limited && len(matched) == 0 {
		return nil, false, nil
	}
	resp, ok, err := f.Token.AuthenticateToken(ctx, token)
	if ok && resp != nil && limited {
		out := *resp
		out.Audiences = matched
		return &out, true, err
	}
	return resp, ok, err
}
