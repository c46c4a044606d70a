package gateway

import (
	"context"
	"errors"
	"fmt"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// grantName is the Role in each namespace that lets nodes read the Secrets which
// gateways serve, and no others.
const grantName = "periplus:gateway-secrets"

// grants keeps those Roles in line with what was built.
type grants struct {
	client kubernetes.Interface
	group  string              // of the nodes
	known  map[string][]string // Secrets by namespace, as written last; nil: not read yet
}

// write brings the Roles in line.
func (g *grants) write(ctx context.Context, b *Build) error {
	want := map[string][]string{}
	for key := range b.secrets {
		want[key.Namespace] = append(want[key.Namespace], key.Name)
	}
	if g.known == nil {
		// Roles from before this process started.
		g.known = map[string][]string{}
		list, err := g.client.RbacV1().Roles(metav1.NamespaceAll).List(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + grantName})
		if err != nil {
			g.known = nil
			return err
		}
		for _, r := range list.Items {
			g.known[r.Namespace] = nil
		}
	}
	var errs []error
	for namespace, names := range want {
		slices.Sort(names)
		if slices.Equal(g.known[namespace], names) {
			continue
		}
		if err := g.role(ctx, namespace, names); err != nil {
			errs = append(errs, fmt.Errorf("let nodes read the secrets %v of namespace %s: %w", names, namespace, err))
			continue
		}
		g.known[namespace] = names
	}
	for namespace := range g.known {
		if want[namespace] != nil {
			continue
		}
		err1 := ignoreMissing(g.client.RbacV1().RoleBindings(namespace).Delete(ctx, grantName, metav1.DeleteOptions{}))
		err2 := ignoreMissing(g.client.RbacV1().Roles(namespace).Delete(ctx, grantName, metav1.DeleteOptions{}))
		if err := errors.Join(err1, err2); err != nil {
			errs = append(errs, err)
			continue
		}
		delete(g.known, namespace)
	}
	return errors.Join(errs...)
}

func (g *grants) role(ctx context.Context, namespace string, names []string) error {
	meta := metav1.ObjectMeta{Name: grantName, Namespace: namespace}
	rules := []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"secrets"}, ResourceNames: names, Verbs: []string{"get", "list", "watch"}}}
	roles := g.client.RbacV1().Roles(namespace)
	_, err := roles.Create(ctx, &rbacv1.Role{ObjectMeta: meta, Rules: rules}, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		have, err := roles.Get(ctx, grantName, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if !equality.Semantic.DeepEqual(have.Rules, rules) {
			have.Rules = rules
			if _, err := roles.Update(ctx, have, metav1.UpdateOptions{}); err != nil {
				return err
			}
		}
	} else if err != nil {
		return err
	}
	_, err = g.client.RbacV1().RoleBindings(namespace).Create(ctx, &rbacv1.RoleBinding{
		ObjectMeta: meta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: grantName},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.GroupKind, APIGroup: rbacv1.GroupName, Name: g.group}},
	}, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}

func ignoreMissing(err error) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}
