package rbac

import (
	"context"
	"maps"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/component-helpers/auth/rbac/validation"

	"github.com/periplus/periplus/apiserver/authz"
)

// NodeAllows answers from the rules of the cluster role system:node.
func NodeAllows(q *authz.Question) bool {
	rules := rulesOfNodes()
	for i := range rules {
		if allows(&rules[i], q) {
			return true
		}
	}
	return false
}

var rulesOfNodes = sync.OnceValue(nodeRules)

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
				if role.AggregationRule != nil { // its rules are not ours to write
					return addSelectors(have, role.AggregationRule.ClusterRoleSelectors)
				}
				return addRules(&have.Rules, role.Rules)
			})
		})
	}
	for _, binding := range clusterRoleBindings() {
		group.Go(func() error {
			return reconcile(ctx, bindings, decorate(&binding.ObjectMeta, &binding), func(have *rbacv1.ClusterRoleBinding) bool {
				return addSubjects(&have.Subjects, binding.Subjects)
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
				return addRules(&have.Rules, role.Rules)
			})
		})
	}
	for _, binding := range namespaceRoleBindings() {
		group.Go(func() error {
			return reconcile(ctx, c.RbacV1().RoleBindings(binding.Namespace), decorate(&binding.ObjectMeta, &binding), func(have *rbacv1.RoleBinding) bool {
				return addSubjects(&have.Subjects, binding.Subjects)
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

// reconcile creates want, or completes the object that exists: its metadata
// here, the rest by add, which reports whether it has added something.
func reconcile[T metav1.Object](ctx context.Context, c typed[T], want T, add func(have T) bool) error {
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
	case have.GetAnnotations()[rbacv1.AutoUpdateAnnotationKey] == "false":
		return nil
	}
	labels, labelled := merge(have.GetLabels(), want.GetLabels())
	annotations, annotated := merge(have.GetAnnotations(), want.GetAnnotations())
	if added := add(have); !added && !labelled && !annotated {
		return nil
	}
	have.SetLabels(labels)
	have.SetAnnotations(annotations)
	_, err = c.Update(ctx, have, metav1.UpdateOptions{})
	if apierrors.IsConflict(err) { // another server was faster
		return reconcile(ctx, c, want, add)
	}
	return err
}

// merge adds to have what it lacks; values that are there stay.
func merge(have, want map[string]string) (map[string]string, bool) {
	out := maps.Clone(want)
	if out == nil {
		out = map[string]string{}
	}
	maps.Copy(out, have)
	return out, len(out) != len(have)
}

// addRules adds the rules that are not yet covered.
func addRules(have *[]rbacv1.PolicyRule, want []rbacv1.PolicyRule) bool {
	n := len(*have)
	for _, w := range want {
		if ok, _ := validation.Covers((*have)[:n], []rbacv1.PolicyRule{w}); !ok {
			*have = append(*have, w)
		}
	}
	return len(*have) > n
}

// addSelectors adds missing selectors to an aggregated role.
func addSelectors(have *rbacv1.ClusterRole, want []metav1.LabelSelector) bool {
	if have.AggregationRule == nil {
		have.AggregationRule = &rbacv1.AggregationRule{}
	}
	return addMissing(&have.AggregationRule.ClusterRoleSelectors, want)
}

func addSubjects(have *[]rbacv1.Subject, want []rbacv1.Subject) bool { return addMissing(have, want) }

func addMissing[T any](have *[]T, want []T) bool {
	n := len(*have)
	for _, w := range want {
		if !slices.ContainsFunc(*have, func(h T) bool { return equality.Semantic.DeepEqual(h, w) }) {
			*have = append(*have, w)
		}
	}
	return len(*have) > n
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
