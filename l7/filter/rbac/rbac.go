package rbac

import (
	"errors"
	"fmt"

	"github.com/periplus/periplus/l7"
)

// An Action says what it means that a policy matches.
type Action int

// Actions.
const (
	// Allow lets through what some policy matches, and nothing else.
	Allow Action = iota
	// Deny refuses what some policy matches.
	Deny
	// Log only tells; everything passes.
	Log
)

// A Policy matches if both sides do; a nil side matches everything.
type Policy struct {
	Name       string
	Permission Matcher
	Principal  Matcher
}

// Filter applies policies to requests, or to whole connections. A Filter with Allow
// and without policies refuses everything.
type Filter struct {
	Action   Action
	Policies []Policy
}

var (
	_ l7.Filter           = (*Filter)(nil)
	_ l7.ConnectionFilter = (*Filter)(nil)
)

// ErrDenied is wrapped when a connection is refused.
var ErrDenied = errors.New("access denied")

// Request implements l7.Filter.
func (f *Filter) Request(x *l7.Exchange) *l7.Reply {
	p, ok := f.decide(&Subject{Connection: x.Connection, Exchange: x})
	if ok {
		return nil
	}
	return &l7.Reply{Status: 403, Body: "RBAC: access denied", Flag: l7.FlagDenied, Details: "rbac_access_denied_matched_policy[" + p + "]"}
}

// Connection implements l7.ConnectionFilter.
func (f *Filter) Connection(c *l7.Connection) error {
	p, ok := f.decide(&Subject{Connection: c})
	if ok {
		return nil
	}
	return fmt.Errorf("rbac_access_denied_matched_policy[%s]: %w", p, ErrDenied)
}

// decide returns the policy that matched, "none" without one.
func (f *Filter) decide(s *Subject) (string, bool) {
	for i := range f.Policies {
		p := &f.Policies[i]
		if (p.Permission == nil || p.Permission(s)) && (p.Principal == nil || p.Principal(s)) {
			return p.Name, f.Action != Deny
		}
	}
	return "none", f.Action != Allow
}
