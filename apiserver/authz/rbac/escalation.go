package rbac

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/component-helpers/auth/rbac/validation"

	"github.com/periplus/periplus/apiserver/authz"
	"github.com/periplus/periplus/apiserver/registry"
	"github.com/periplus/periplus/apiserver/request"
)

// A Guard refuses writes by which somebody would give away more than he has:
// whoever writes a role must hold all of its rules or may "escalate" it, whoever
// binds one must hold its rules or may "bind" it.
type Guard struct {
	Mode  *Mode
	Authz authz.Mode // all modes: the verbs escalate and bind
}

// Hooks returns the guard's part in the writes of the four kinds.
func (g Guard) Hooks() map[schema.GroupVersionResource]registry.Hooks {
	out := map[schema.GroupVersionResource]registry.Hooks{}
	for _, gvr := range []schema.GroupVersionResource{Roles, ClusterRoles, RoleBindings, ClusterRoleBindings} {
		out[gvr] = registry.Hooks{
			BeginCreate: func(ctx context.Context, obj runtime.Object, _ bool) (func(bool), error) {
				return func(bool) {}, g.check(ctx, gvr, obj, nil)
			},
			BeginUpdate: func(ctx context.Context, obj, old runtime.Object, _ bool) (func(bool), error) {
				return func(bool) {}, g.check(ctx, gvr, obj, old)
			},
		}
	}
	return out
}

func (g Guard) check(ctx context.Context, gvr schema.GroupVersionResource, obj, old runtime.Object) error {
	s := request.From(ctx)
	if s == nil || s.User == nil || slices.Contains(s.User.GetGroups(), user.SystemPrivilegedGroup) || onlyMeta(obj, old) {
		return nil
	}
	meta := obj.(metav1.Object)
	err := g.confirm(ctx, s.User, gvr, obj, old)
	var status apierrors.APIStatus
	if err == nil || errors.As(err, &status) {
		return err
	}
	return apierrors.NewForbidden(gvr.GroupResource(), meta.GetName(), err)
}

// onlyMeta reports whether an update is one of the garbage collector's: of owners
// and finalizers alone.
func onlyMeta(obj, old runtime.Object) bool {
	if old == nil {
		return false
	}
	a, b := obj.DeepCopyObject(), old.DeepCopyObject()
	for _, o := range []runtime.Object{a, b} {
		m := o.(metav1.Object)
		m.SetOwnerReferences(nil)
		m.SetFinalizers(nil)
		m.SetManagedFields(nil)
		m.SetResourceVersion("")
		o.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{})
	}
	return equality.Semantic.DeepEqual(a, b)
}

func (g Guard) confirm(ctx context.Context, u user.Info, gvr schema.GroupVersionResource, obj, old runtime.Object) error {
	switch o := obj.(type) {
	case *rbacv1.Role:
		if before, ok := old.(*rbacv1.Role); ok && equality.Semantic.DeepEqual(before.Rules, o.Rules) {
			return nil
		}
		return g.role(ctx, u, gvr, o.Namespace, o.Name, o.Rules)
	case *rbacv1.ClusterRole:
		if before, ok := old.(*rbacv1.ClusterRole); ok && equality.Semantic.DeepEqual(before.Rules, o.Rules) &&
			equality.Semantic.DeepEqual(before.AggregationRule, o.AggregationRule) {
			return nil
		}
		if err := g.role(ctx, u, gvr, "", o.Name, o.Rules); err != nil || o.AggregationRule == nil || len(o.AggregationRule.ClusterRoleSelectors) == 0 {
			return err
		}
		// What is aggregated later cannot be known now.
		if !g.may(ctx, u, "escalate", gvr, "", o.Name) && g.holds(u, "", everything) != nil {
			return errors.New("must have cluster-admin privileges to use an aggregationRule")
		}
		return nil
	case *rbacv1.RoleBinding:
		return g.binding(ctx, u, o.Namespace, &o.RoleRef)
	case *rbacv1.ClusterRoleBinding:
		return g.binding(ctx, u, "", &o.RoleRef)
	}
	return nil
}

var everything = []rbacv1.PolicyRule{
	{Verbs: []string{"*"}, APIGroups: []string{"*"}, Resources: []string{"*"}},
	{Verbs: []string{"*"}, NonResourceURLs: []string{"*"}},
}

func (g Guard) role(ctx context.Context, u user.Info, gvr schema.GroupVersionResource, namespace, name string, rules []rbacv1.PolicyRule) error {
	if g.may(ctx, u, "escalate", gvr, namespace, name) {
		return nil
	}
	return g.holds(u, namespace, rules)
}

func (g Guard) binding(ctx context.Context, u user.Info, namespace string, ref *rbacv1.RoleRef) error {
	gvr := ClusterRoles
	if ref.Kind == "Role" {
		gvr = Roles
	}
	if g.may(ctx, u, "bind", gvr, namespace, ref.Name) {
		return nil
	}
	rules, err := g.Mode.rules(namespace, ref)
	if err != nil {
		return err
	}
	return g.holds(u, namespace, rules)
}

// may asks for one of the two verbs that lift the guard.
func (g Guard) may(ctx context.Context, u user.Info, verb string, gvr schema.GroupVersionResource, namespace, name string) bool {
	d, _, _ := g.Authz.Authorize(ctx, &authz.Question{
		User: u, Verb: verb, IsResource: true, Group: gvr.Group, Version: "*", Resource: gvr.Resource, Namespace: namespace, Name: name,
	})
	return d == authz.Allow
}

// holds returns an error that names the rules that u lacks.
func (g Guard) holds(u user.Info, namespace string, rules []rbacv1.PolicyRule) error {
	ok, missing := validation.Covers(g.Mode.rulesOf(u, namespace), rules)
	if ok {
		return nil
	}
	seen := map[string]bool{}
	var lines []string
	for i := range missing {
		if text := compact(&missing[i]); !seen[text] {
			seen[text] = true
			lines = append(lines, text)
		}
	}
	slices.Sort(lines)
	return fmt.Errorf("user %q (groups=%q) is attempting to grant RBAC permissions not currently held:\n%s", u.GetName(), u.GetGroups(), strings.Join(lines, "\n"))
}

// compact writes a rule's fields that are set.
func compact(r *rbacv1.PolicyRule) string {
	var parts []string
	for _, f := range []struct {
		name  string
		value []string
	}{
		{"APIGroups", r.APIGroups}, {"Resources", r.Resources}, {"NonResourceURLs", r.NonResourceURLs},
		{"ResourceNames", r.ResourceNames}, {"Verbs", r.Verbs},
	} {
		if len(f.value) > 0 {
			parts = append(parts, fmt.Sprintf("%s:%q", f.name, f.value))
		}
	}
	return "{" + strings.Join(parts, ", ") + "}"
}
