package rbac

import (
	"context"
	"maps"

	"golang.org/x/sync/errgroup"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/periplus/periplus/apiserver/authz"
)

// NodeAllows answers from the rules of the cluster role system:node.
func NodeAllows(q *authz.Question) bool {
	for i := range nodeRules {
		if allows(&nodeRules[i], q) {
			return true
		}
	}
	return false
}

// BootstrapCluster makes the default cluster roles and bindings, and adds to
// existing ones what is missing (unless their annotation
// rbac.authorization.kubernetes.io/autoupdate is "false").
func BootstrapCluster(ctx context.Context, c kubernetes.Interface) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(32)
	roles, bindings := c.RbacV1().ClusterRoles(), c.RbacV1().ClusterRoleBindings()
	for _, role := range clusterRoles() {
		group.Go(func() error {
			return reconcile(ctx, roles, decorate(&role.ObjectMeta, &role), func(have *rbacv1.ClusterRole) bool {
				if have.AggregationRule != nil && role.AggregationRule != nil {
					return equality.Semantic.DeepEqual(have.AggregationRule, role.AggregationRule)
				}
				n := len(have.Rules)
				have.Rules = union(have.Rules, role.Rules)
				return n == len(have.Rules)
			})
		})
	}
	for _, binding := range clusterRoleBindings() {
		group.Go(func() error {
			return reconcile(ctx, bindings, decorate(&binding.ObjectMeta, &binding), func(have *rbacv1.ClusterRoleBinding) bool {
				n := len(have.Subjects)
				have.Subjects = unionSubjects(have.Subjects, binding.Subjects)
				return n == len(have.Subjects)
			})
		})
	}
	return group.Wait()
}

// BootstrapNamespaces makes the default roles and bindings inside namespaces,
// which must exist.
func BootstrapNamespaces(ctx context.Context, c kubernetes.Interface) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(32)
	for _, role := range namespaceRoles() {
		group.Go(func() error {
			return reconcile(ctx, c.RbacV1().Roles(role.Namespace), decorate(&role.ObjectMeta, &role), func(have *rbacv1.Role) bool {
				n := len(have.Rules)
				have.Rules = union(have.Rules, role.Rules)
				return n == len(have.Rules)
			})
		})
	}
	for _, binding := range namespaceRoleBindings() {
		group.Go(func() error {
			return reconcile(ctx, c.RbacV1().RoleBindings(binding.Namespace), decorate(&binding.ObjectMeta, &binding), func(have *rbacv1.RoleBinding) bool {
				n := len(have.Subjects)
				have.Subjects = unionSubjects(have.Subjects, binding.Subjects)
				return n == len(have.Subjects)
			})
		})
	}
	return group.Wait()
}

// decorate marks an object as one of the defaults.
func decorate[T any](meta *metav1.ObjectMeta, obj T) T {
	labels := map[string]string{"kubernetes.io/bootstrapping": "rbac-defaults"}
	maps.Copy(labels, meta.Labels)
	meta.Labels = labels
	meta.Annotations = map[string]string{rbacv1.AutoUpdateAnnotationKey: "true"}
	return obj
}

type typed[T any] interface {
	Get(ctx context.Context, name string, o metav1.GetOptions) (T, error)
	Create(ctx context.Context, obj T, o metav1.CreateOptions) (T, error)
	Update(ctx context.Context, obj T, o metav1.UpdateOptions) (T, error)
}

// reconcile creates want, or completes the object that exists. complete adds
// what is missing and reports whether nothing was.
func reconcile[T metav1.Object](ctx context.Context, c typed[T], want T, complete func(have T) bool) error {
	have, err := c.Get(ctx, want.GetName(), metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		_, err = c.Create(ctx, want, metav1.CreateOptions{})
		if apierrors.IsAlreadyExists(err) {
			return nil
		}
		return err
	case err != nil:
		return err
	case have.GetAnnotations()[rbacv1.AutoUpdateAnnotationKey] == "false" || complete(have):
		return nil
	}
	_, err = c.Update(ctx, have, metav1.UpdateOptions{})
	return err
}

func union(have, want []rbacv1.PolicyRule) []rbacv1.PolicyRule {
	for _, w := range want {
		found := false
		for _, h := range have {
			found = found || equality.Semantic.DeepEqual(h, w)
		}
		if !found {
			have = append(have, w)
		}
	}
	return have
}

func unionSubjects(have, want []rbacv1.Subject) []rbacv1.Subject {
	for _, w := range want {
		found := false
		for _, h := range have {
			found = found || h == w
		}
		if !found {
			have = append(have, w)
		}
	}
	return have
}

// bind returns a cluster role binding of the same name as its role.
func bind(role string, subjects ...rbacv1.Subject) rbacv1.ClusterRoleBinding {
	return rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: role},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
		Subjects:   subjects,
	}
}

func toUser(name string) rbacv1.Subject {
	return rbacv1.Subject{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: name}
}

func toGroup(name string) rbacv1.Subject {
	return rbacv1.Subject{Kind: rbacv1.GroupKind, APIGroup: rbacv1.GroupName, Name: name}
}

func toAccount(name string) rbacv1.Subject {
	return rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: metav1.NamespaceSystem, Name: name}
}

// on starts a rule about resources of an API group.
func on(group string, resources ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: resources}
}

func allow(r rbacv1.PolicyRule, verbs ...string) rbacv1.PolicyRule {
	r.Verbs = verbs
	return r
}

