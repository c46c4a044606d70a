package authz

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/periplus/periplus/apiserver/request"
)

// A Question is one thing that somebody wants to do.
type Question struct {
	User        user.Info
	Verb        string
	IsResource  bool
	Group       string
	Version     string
	Resource    string
	Subresource string
	Namespace   string
	Name        string
	Path        string // of a non-resource request

	// FieldSelector and LabelSelector confine a list, watch or deletecollection.
	FieldSelector string
	LabelSelector string
}

// A Decision is a mode's answer.
type Decision int

// The decisions.
const (
	NoOpinion Decision = iota
	Allow
	Deny
)

// A Mode answers questions. reason is for the log and the message of a denial; err
// says what was in the way of an opinion. With err and without permission a request
// fails for a reason that is not its sender's.
type Mode interface {
	Authorize(ctx context.Context, q *Question) (d Decision, reason string, err error)
}

// A Lister lists what somebody may do in a namespace. incomplete says why there may be
// more.
type Lister interface {
	Rules(u user.Info, namespace string) (rules []rbacv1.PolicyRule, incomplete error)
}

// A Chain asks modes in turn.
type Chain []Mode

// Authorize returns the first opinion.
func (c Chain) Authorize(ctx context.Context, q *Question) (Decision, string, error) {
	var reasons []string
	var errs []error
	for _, m := range c {
		d, reason, err := m.Authorize(ctx, q)
		if d != NoOpinion {
			return d, reason, err
		}
		if reason != "" {
			reasons = append(reasons, reason)
		}
		if err != nil {
			errs = append(errs, err)
		}
	}
	return NoOpinion, strings.Join(reasons, "\n"), utilerrors.NewAggregate(errs)
}

// Rules implements Lister, with what the modes can tell.
func (c Chain) Rules(u user.Info, namespace string) ([]rbacv1.PolicyRule, error) {
	var rules []rbacv1.PolicyRule
	var errs []error
	for _, m := range c {
		l, ok := m.(Lister)
		if !ok {
			continue
		}
		more, err := l.Rules(u, namespace)
		rules = append(rules, more...)
		if err != nil {
			errs = append(errs, err)
		}
	}
	return rules, utilerrors.NewAggregate(errs)
}

// Check asks m and returns nil or the answer to the request: that it is forbidden, or
// that nobody could say.
func Check(ctx context.Context, m Mode, q *Question) error {
	d, reason, err := m.Authorize(ctx, q)
	switch {
	case d == Allow:
		return nil
	case err != nil:
		return apierrors.NewInternalError(err)
	}
	return Forbidden(q, reason)
}

// Masters allows everything to members of system:masters.
type Masters struct{}

// Authorize implements Mode.
func (Masters) Authorize(_ context.Context, q *Question) (Decision, string, error) {
	if slices.Contains(q.User.GetGroups(), user.SystemPrivilegedGroup) {
		return Allow, "", nil
	}
	return NoOpinion, "", nil
}

// Rules implements Lister.
func (Masters) Rules(u user.Info, _ string) ([]rbacv1.PolicyRule, error) {
	if slices.Contains(u.GetGroups(), user.SystemPrivilegedGroup) {
		return Everything(), nil
	}
	return nil, nil
}

// Everything are the rules of those who may do anything.
func Everything() []rbacv1.PolicyRule {
	all := []string{"*"}
	return []rbacv1.PolicyRule{{Verbs: all, APIGroups: all, Resources: all}, {Verbs: all, NonResourceURLs: all}}
}

// Of returns the question that a request asks.
func Of(s *request.State) *Question {
	i := &s.Info
	q := &Question{User: s.User, Verb: i.Verb, IsResource: i.IsResource, Path: i.Path}
	if i.IsResource {
		q.Group, q.Version, q.Resource, q.Subresource = i.Group, i.Version, i.Resource, i.Subresource
		q.Namespace, q.Name = i.Namespace, i.Name
		q.FieldSelector, q.LabelSelector = i.FieldSelector, i.LabelSelector
		if i.Resource == "namespaces" && i.Namespace == i.Name {
			q.Namespace = i.Name
		}
	}
	return q
}

// Forbidden is the answer to a request that is not allowed, in upstream's words.
func Forbidden(q *Question, reason string) error {
	what := message(q)
	if reason != "" {
		what += ": " + reason
	}
	details := &metav1.StatusDetails{Name: q.Name, Group: q.Group, Kind: q.Resource}
	text := "forbidden: " + what
	if q.IsResource {
		gr := q.Resource
		if q.Group != "" {
			gr += "." + q.Group
		}
		text = gr + " is " + text
		if q.Name != "" {
			text = fmt.Sprintf("%s %q is forbidden: %s", gr, q.Name, what)
		}
	}
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusForbidden, Reason: metav1.StatusReasonForbidden, Message: text, Details: details,
	}}
}

func message(q *Question) string {
	name := q.User.GetName()
	if !q.IsResource {
		return fmt.Sprintf("User %q cannot %s path %q", name, q.Verb, q.Path)
	}
	resource := q.Resource
	if q.Subresource != "" {
		resource += "/" + q.Subresource
	}
	text := fmt.Sprintf("User %q cannot %s resource %q in API group %q", name, q.Verb, resource, q.Group)
	if q.Namespace != "" {
		return text + fmt.Sprintf(" in the namespace %q", q.Namespace)
	}
	return text + " at the cluster scope"
}
