package node

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/periplus/periplus/apiserver/authz"
	"github.com/periplus/periplus/apiserver/registry"
)

const userPrefix = "system:node:"

// Mode is the authorization mode Node.
type Mode struct {
	objects objects
	general func(q *authz.Question) bool
	rules   map[schema.GroupResource]rule
}

var (
	_ authz.Mode   = (*Mode)(nil)
	_ authz.Lister = (*Mode)(nil)
)

// New returns the mode. general answers from the rules of the cluster role
// system:node, for the resources that have no rule of their own.
func New(o registry.Reader, general func(*authz.Question) bool) *Mode {
	m := &Mode{objects: objects{o}, general: general}
	m.rules = m.table()
	return m
}

// NameOf returns the node that u is, if it is one.
func NameOf(u user.Info) (string, bool) {
	name, ok := strings.CutPrefix(u.GetName(), userPrefix)
	if !ok || name == "" {
		return "", false
	}
	if slices.Contains(u.GetGroups(), user.NodesGroup) {
		return name, true
	}
	return "", false
}

// Authorize implements authz.Mode.
func (m *Mode) Authorize(_ context.Context, q *authz.Question) (authz.Decision, string, error) {
	node, ok := NameOf(q.User)
	if !ok {
		return authz.NoOpinion, "", nil
	}
	if q.IsResource {
		if rule := m.rules[schema.GroupResource{Group: q.Group, Resource: q.Resource}]; rule != nil {
			allowed, reason := rule(node, q)
			if allowed {
				return authz.Allow, "", nil
			}
			return authz.NoOpinion, reason, nil
		}
	}
	if m.general(q) {
		return authz.Allow, "", nil
	}
	return authz.NoOpinion, "", nil
}

// Rules implements authz.Lister: what a node may do depends on its pods.
func (m *Mode) Rules(u user.Info, _ string) ([]rbacv1.PolicyRule, error) {
	if _, ok := NameOf(u); ok {
		return nil, errors.New("node authorizer does not support user rule resolution")
	}
	return nil, nil
}

func unrelated(node string) string {
	return fmt.Sprintf("no relationship found between node '%s' and this object", node)
}
