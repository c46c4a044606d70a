package impersonation

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/utils/lru"

	"github.com/periplus/periplus/apiserver/authz"
)

const (
	// many is how many groups or extra values are worth a question about all at once.
	many = 4
	// remembered is of how many senders the way is known that they went last.
	remembered = 10_000
)

// A Checker decides who may act as whom.
type Checker struct {
	mode authz.Mode
	last *lru.Cache // the index of the way that a sender went last, by his name
}

// New returns a checker that asks m.
func New(m authz.Mode) *Checker { return &Checker{m, lru.New(remembered)} }

// Check returns as whom the sender of a request may act to do what q says, and the verb by
// which he may: "" for the legacy one. If he may not, the error is the first way's.
func (c *Checker) Check(ctx context.Context, wanted *user.DefaultInfo, q *authz.Question) (as *user.DefaultInfo, constraint string, err error) {
	last := -1
	if i, ok := c.last.Get(q.User.GetName()); ok {
		last = i.(int)
	}
	var first error
	try := func(i int) bool {
		w := &ways[i]
		if !w.is(wanted, q.User) {
			return false
		}
		got, refused := c.try(ctx, w, wanted, q)
		if refused != nil {
			if first == nil {
				first = refused
			}
			return false
		}
		if as = got; w.name != "" {
			constraint = w.verb()
		}
		return true
	}
	if last >= 0 && try(last) {
		return as, constraint, nil
	}
	for i := range ways {
		if i != last && try(i) {
			c.last.Add(q.User.GetName(), i)
			return as, constraint, nil
		}
	}
	return nil, "", first
}

// try asks whether a way is open.
func (c *Checker) try(ctx context.Context, w *way, wanted *user.DefaultInfo, q *authz.Question) (*user.DefaultInfo, error) {
	if w.name != "" {
		on := *q
		on.Verb = "impersonate-on:" + w.name + ":" + q.Verb
		if err := c.ask(ctx, w, &on); err != nil {
			return nil, err
		}
	}
	as := *wanted
	for _, part := range []func(context.Context, *way, user.Info, *user.DefaultInfo) error{c.name, c.uid, c.groups, c.extra} {
		if err := part(ctx, w, q.User, &as); err != nil {
			return nil, err
		}
	}
	if as.Name == user.Anonymous {
		as.Groups = with(as.Groups, user.AllUnauthenticated)
	} else if !slices.Contains(as.Groups, user.AllUnauthenticated) {
		as.Groups = with(as.Groups, user.AllAuthenticated)
	}
	return &as, nil
}

// question is one about a part of an identity.
func question(w *way, sender user.Info) authz.Question {
	return authz.Question{User: sender, Verb: w.verb(), IsResource: true, Group: authenticationv1.GroupName, Version: "v1"}
}

// of makes it one about the kinds that the legacy way has in the core group.
func of(w *way, sender user.Info, resource, name string) authz.Question {
	q := question(w, sender)
	if w.name == "" {
		q.Group = ""
	}
	q.Resource, q.Name = resource, name
	return q
}

// name asks about the user's name.
func (c *Checker) name(ctx context.Context, w *way, sender user.Info, as *user.DefaultInfo) error {
	q := of(w, sender, "users", as.Name)
	if node, ok := nodeOf(as.Name); ok && w.name != "" {
		q.Resource, q.Name = "nodes", node
	}
	if namespace, name, err := serviceaccount.SplitUsername(as.Name); err == nil {
		q.Resource, q.Namespace, q.Name = "serviceaccounts", namespace, name
	}
	return c.ask(ctx, w, &q)
}

func (c *Checker) uid(ctx context.Context, w *way, sender user.Info, as *user.DefaultInfo) error {
	if as.UID == "" {
		return nil
	}
	q := question(w, sender)
	q.Resource, q.Name = "uids", as.UID
	return c.ask(ctx, w, &q)
}

// groups asks about the groups that are wanted; nodes and service accounts get their own.
func (c *Checker) groups(ctx context.Context, w *way, sender user.Info, as *user.DefaultInfo) error {
	if len(as.Groups) == 0 {
		if namespace, _, err := serviceaccount.SplitUsername(as.Name); err == nil {
			as.Groups = serviceaccount.MakeGroupNames(namespace)
		}
		if _, ok := nodeOf(as.Name); ok && w.name != "" {
			as.Groups = []string{user.NodesGroup}
		}
		return nil
	}
	q := of(w, sender, "groups", "")
	if w.name != "" {
		if slices.Contains(as.Groups, "") {
			return authz.Forbidden(&q, "impersonating the empty string group is not allowed")
		}
		if slices.Contains(as.Groups, user.SystemPrivilegedGroup) {
			q.Name = user.SystemPrivilegedGroup
			return authz.Forbidden(&q, "impersonating the system:masters group is not allowed")
		}
		if q.Name = "*"; len(as.Groups) >= many && c.ask(ctx, w, &q) == nil {
			return nil
		}
	}
	for _, q.Name = range as.Groups {
		if err := c.ask(ctx, w, &q); err != nil {
			return err
		}
	}
	return nil
}

func (c *Checker) extra(ctx context.Context, w *way, sender user.Info, as *user.DefaultInfo) error {
	if len(as.Extra) == 0 {
		return nil
	}
	q := question(w, sender)
	q.Resource = "userextras"
	if w.name != "" {
		if err := validExtra(as.Extra); err != nil {
			return authz.Forbidden(&q, err.Error())
		}
		count := 0
		for _, values := range as.Extra {
			count += len(values)
		}
		if q.Subresource, q.Name = "*", "*"; max(count, len(as.Extra)) >= many && c.ask(ctx, w, &q) == nil {
			return nil
		}
	}
	for key, values := range as.Extra {
		q.Subresource = key
		for _, q.Name = range values {
			if err := c.ask(ctx, w, &q); err != nil {
				return err
			}
		}
	}
	return nil
}

func validExtra(extra map[string][]string) error {
	for key, values := range extra {
		switch {
		case key == "":
			return errors.New("impersonating the empty string key in extra is not allowed")
		case key != strings.ToLower(key):
			return fmt.Errorf("impersonating a non-lowercase key in extra is not allowed: %q", key)
		case len(values) == 0:
			return errors.New("impersonating empty values in extra is not allowed")
		case slices.Contains(values, ""):
			return errors.New("impersonating the empty string value in extra is not allowed")
		}
		if err := validation.IsDomainPrefixedPath(field.NewPath("extra", "key"), key).ToAggregate(); err != nil {
			return fmt.Errorf("impersonating an invalid key in extra is not allowed: %w", err)
		}
	}
	return nil
}

// ask returns nil or a 403, whatever is in the way.
func (c *Checker) ask(ctx context.Context, w *way, q *authz.Question) error {
	put := *q
	if w.as != nil {
		w.as(&put)
	}
	d, reason, err := c.mode.Authorize(ctx, &put)
	switch {
	case d == authz.Allow:
		return nil
	case apierrors.IsForbidden(err):
		return err
	case err != nil && reason != "":
		reason = fmt.Sprintf("%v: %s", err, reason)
	case err != nil:
		reason = err.Error()
	}
	return authz.Forbidden(&put, reason)
}

// with returns the groups with one more, if it is not among them.
func with(groups []string, one string) []string {
	if slices.Contains(groups, one) {
		return groups
	}
	return append(slices.Clip(groups), one)
}
