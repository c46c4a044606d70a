package oidc

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync/atomic"

	"k8s.io/apiserver/pkg/apis/apiserver"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	authenticationcel "k8s.io/apiserver/pkg/authentication/cel"
	"k8s.io/apiserver/plugin/pkg/authenticator/token/oidc"

	"github.com/periplus/periplus/apiserver/authn/anonymous"
	"github.com/periplus/periplus/base"
)

// Config is what Tokens are made of.
type Config struct {
	// Flags name one issuer, File a structured configuration: at most one of them is set.
	Flags Flags
	File  string
	// Reserved are issuers that may not be named: the service accounts'.
	Reserved []string
	// Anonymous is who may be anonymous unless the file says so; nil: everybody.
	Anonymous *apiserver.AnonymousAuthConfig
	Log       *slog.Logger
}

// Tokens accepts the tokens of its issuers. Make it with New, and Close it.
type Tokens struct {
	config Config
	seen   [sha256.Size]byte // of the file; Load's alone
	state  atomic.Pointer[state]
}

// state is one configuration as it is in force.
type state struct {
	list      []oidc.AuthenticatorTokenWithHealthCheck
	anonymous authenticator.Request
	end       context.CancelFunc
}

var _ authenticator.Token = (*Tokens)(nil)

// New reads the configuration. Keys of the issuers are fetched meanwhile and afterwards.
func New(c Config) (*Tokens, error) {
	t := &Tokens{config: c}
	if c.File != "" {
		return t, t.Load()
	}
	flags, err := c.Flags.Configuration()
	if err != nil {
		return nil, err
	}
	if flags == nil {
		t.state.Store(&state{anonymous: anonymous.New(c.Anonymous), end: func() {}})
		return t, nil
	}
	return t, t.use(flags, c.Flags.SigningAlgorithms)
}

// Load reads the file again, if it has changed. The error says why it is not in force.
func (t *Tokens) Load() error {
	text, err := os.ReadFile(t.config.File)
	if err != nil {
		return fmt.Errorf("authentication-config: %w", err)
	}
	sum := sha256.Sum256(text)
	if t.state.Load() != nil && sum == t.seen {
		return nil
	}
	c, err := Parse(text)
	if err == nil && c.Anonymous != nil && t.config.Anonymous != nil {
		err = errors.New("anonymous and the flag anonymous-auth are mutually exclusive")
	}
	if err == nil {
		err = t.use(c, oidc.AllValidSigningAlgorithms())
	}
	if err != nil {
		return fmt.Errorf("authentication-config %s: %w", t.config.File, err)
	}
	t.seen = sum
	return nil
}

// use puts a configuration in force.
func (t *Tokens) use(c *apiserver.AuthenticationConfiguration, algorithms []string) error {
	compiler := authenticationcel.NewDefaultCompiler()
	if err := validate(compiler, c, t.config.Reserved); err != nil {
		return err
	}
	ctx, end := context.WithCancel(context.Background()) // ended by the next configuration, or by Close
	next := &state{end: end}
	for i := range c.JWT {
		o := oidc.Options{JWTAuthenticator: c.JWT[i], Compiler: compiler, SupportedSigningAlgs: algorithms, DisallowedIssuers: t.config.Reserved}
		if ca := c.JWT[i].Issuer.CertificateAuthority; ca != "" {
			o.CAContentProvider = static(ca)
		}
		a, err := oidc.New(ctx, o)
		if err != nil {
			end()
			return err
		}
		next.list = append(next.list, a)
	}
	who := c.Anonymous
	if who == nil {
		who = t.config.Anonymous
	}
	next.anonymous = anonymous.New(who)
	if before := t.state.Swap(next); before != nil {
		before.end()
		t.config.Log.Info("authentication configuration is in force", "issuers", len(next.list), base.KeyPath, t.config.File)
	}
	return nil
}

// static is an authority that does not change.
type static string

func (s static) CurrentCABundleContent() []byte { return []byte(s) }

// Close ends what goes on in the background.
func (t *Tokens) Close() { t.state.Load().end() }

// Empty reports whether there are no issuers.
func (t *Tokens) Empty() bool { return len(t.state.Load().list) == 0 }

// AuthenticateToken implements authenticator.Token.
func (t *Tokens) AuthenticateToken(ctx context.Context, token string) (*authenticator.Response, bool, error) {
	var wrong []error
	for _, a := range t.state.Load().list {
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
