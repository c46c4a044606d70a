package all

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/cel"

	"github.com/periplus/periplus/apiserver/authz"
	"github.com/periplus/periplus/apiserver/authz/abac"
	"github.com/periplus/periplus/apiserver/authz/webhook"
	"github.com/periplus/periplus/apiserver/measure"
)

// Config is what an Authorization is made of.
type Config struct {
	Options
	Node, RBAC authz.Mode
	// Metrics count decisions; nil counts none.
	Metrics *measure.Metrics
}

// An Authorization asks the modes that are configured.
type Authorization struct {
	config   Config
	policies abac.Mode
	compiler func() cel.Compiler
	current  atomic.Pointer[authz.Chain]

	mu   sync.Mutex
	read []byte // guarded by mu: the configuration file, as it was last read
}

var (
	_ authz.Mode   = (*Authorization)(nil)
	_ authz.Lister = (*Authorization)(nil)
)

// New reads what the options name.
func New(c Config) (*Authorization, error) {
	if len(c.Modes) == 0 && c.ConfigFile == "" {
		c.Modes = Defaults().Modes
	}
	if err := c.Validate(); err != nil {
		return nil, err
	}
	a := &Authorization{config: c, compiler: sync.OnceValue(cel.NewDefaultCompiler)}
	if c.PolicyFile != "" {
		var err error
		if a.policies, err = abac.Load(c.PolicyFile); err != nil {
			return nil, err
		}
	}
	if c.ConfigFile != "" {
		return a, a.Reload()
	}
	chain := authz.Chain{authz.Masters{}}
	for _, name := range c.Modes {
		m, err := a.mode(name, c.Webhook)
		if err != nil {
			return nil, err
		}
		chain = append(chain, m)
	}
	a.current.Store(&chain)
	return a, nil
}

// mode makes one of the modes, counted.
func (a *Authorization) mode(name string, asks webhook.Config) (authz.Mode, error) {
	m, err := a.made(name, asks)
	if err != nil || a.config.Metrics == nil {
		return m, err
	}
	called := strings.ToLower(name)
	if asks.Name != "" {
		called = asks.Name
	}
	return counted{m, a.config.Metrics.Decisions(name, called)}, nil
}

func (a *Authorization) made(name string, asks webhook.Config) (authz.Mode, error) {
	switch name {
	case AlwaysAllow:
		return always(authz.Allow), nil
	case AlwaysDeny:
		return always(authz.NoOpinion), nil
	case ABAC:
		if a.policies == nil {
			return nil, fmt.Errorf("authorizer type ABAC is not allowed without --authorization-policy-file")
		}
		return a.policies, nil
	case Node:
		return a.config.Node, nil
	case RBAC:
		return a.config.RBAC, nil
	case Webhook:
		if asks.Name == "" {
			asks.Name = "default"
		}
		asks.Compiler = a.compiler()
		return webhook.New(asks)
	}
	return nil, fmt.Errorf("unknown authorization mode %s specified", name)
}

// Authorize implements authz.Mode.
func (a *Authorization) Authorize(ctx context.Context, q *authz.Question) (authz.Decision, string, error) {
	return a.current.Load().Authorize(ctx, q)
}

// Rules implements authz.Lister.
func (a *Authorization) Rules(u user.Info, namespace string) ([]rbacv1.PolicyRule, error) {
	return a.current.Load().Rules(u, namespace)
}

// Reload reads the configuration file again; with an error everything stays as it is.
func (a *Authorization) Reload() error {
	if a.config.ConfigFile == "" {
		return nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	data, err := os.ReadFile(a.config.ConfigFile)
	if err != nil {
		return err
	}
	if a.read != nil && bytes.Equal(data, a.read) {
		return nil
	}
	chain, err := a.parse(data)
	if err != nil {
		return fmt.Errorf("%s: %w", a.config.ConfigFile, err)
	}
	a.read = data
	a.current.Store(&chain)
	return nil
}
