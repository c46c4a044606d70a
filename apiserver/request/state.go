package request

import (
	"context"
	"slices"
	"sync"
	"time"

	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/periplus/periplus/apiserver/measure"
)

// State is what is known about one request. Stations fill it in turn; Info and
// User do not change afterwards.
type State struct {
	Info     Info
	User     user.Info
	AuditID  string
	Received time.Time
	Agent    string // the client's User-Agent, for field managers and logs
	// Impersonator sent the request, when User is somebody else; nil otherwise.
	Impersonator user.Info
	// Audit hears of the request; nil when it is not audited.
	Audit Auditor
	// Begun, if not nil, is called when a request that lasts has done the work of its
	// beginning: a watch has written what was there.
	Begun func()
	// Metrics are the server's; nil ones measure nothing.
	Metrics *measure.Metrics
	// Traced says that the request has a span in its context.
	Traced bool
	// Elsewhere is the time that passed while the request waited for others.
	Elsewhere Elsewhere

	mu       sync.Mutex
	warnings []string
}

type key struct{}

// With returns a context that carries s.
func With(ctx context.Context, s *State) context.Context {
	return context.WithValue(ctx, key{}, s)
}

// From returns the request's state, or nil outside a request.
func From(ctx context.Context) *State {
	s, _ := ctx.Value(key{}).(*State)
	return s
}

type userKey struct{}

// WithUser returns a context that names the caller. Only code in this process
// can do so: it is how components speak to the API server without certificates.
func WithUser(ctx context.Context, u user.Info) context.Context {
	return context.WithValue(ctx, userKey{}, u)
}

// UserFrom returns the caller named by WithUser.
func UserFrom(ctx context.Context) (user.Info, bool) {
	u, ok := ctx.Value(userKey{}).(user.Info)
	return u, ok
}

// Warn adds a warning to the answer of the request that ctx belongs to.
func Warn(ctx context.Context, text string) {
	s := From(ctx)
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !slices.Contains(s.warnings, text) {
		s.warnings = append(s.warnings, text)
	}
}

// Warnings returns the warnings so far.
func (s *State) Warnings() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.warnings)
}
