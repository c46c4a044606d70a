package clusterroleaggregation

import (
	"cmp"
	"context"
	"slices"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	rbaclisters "k8s.io/client-go/listers/rbac/v1"

	"github.com/periplus/periplus/controllers"
)

// Controller declares cluster role aggregation.
func Controller() controllers.Controller {
	roles := []schema.GroupVersionResource{rbacv1.SchemeGroupVersion.WithResource("clusterroles")}
	return controllers.Controller{Name: "clusterrole-aggregation-controller", Reads: roles, Writes: roles, Workers: 1, New: build}
}

type reconciler struct {
	*controllers.Setup
	roles rbaclisters.ClusterRoleLister
}

func build(s *controllers.Setup) (controllers.Reconciler, error) {
	informer := s.Informers.Rbac().V1().ClusterRoles()
	r := &reconciler{Setup: s, roles: informer.Lister()}
	s.Watch(informer.Informer(), controllers.On(r.changed))
	return r, nil
}

// changed wakes every aggregated role: there are few, and any may select the one
// that changed, or have selected it before.
func (r *reconciler) changed(old, now *rbacv1.ClusterRole) {
	if old != nil && now != nil && equality.Semantic.DeepEqual(old.Labels, now.Labels) &&
		equality.Semantic.DeepEqual(old.Rules, now.Rules) && equality.Semantic.DeepEqual(old.AggregationRule, now.AggregationRule) {
		return
	}
	roles, err := r.roles.List(labels.Everything())
	if err != nil {
		return
	}
	for _, role := range roles {
		if role.AggregationRule != nil {
			r.Queue.Add(controllers.Key{Name: role.Name})
		}
	}
}

// Reconcile writes the role's rules if they are not the union of those it selects.
func (r *reconciler) Reconcile(ctx context.Context, key controllers.Key) (time.Duration, error) {
	role, err := r.roles.Get(key.Name)
	if apierrors.IsNotFound(err) {
		return 0, nil
	}
	if err != nil || role.AggregationRule == nil {
		return 0, err
	}
	rules, err := r.union(role)
	if err != nil || equality.Semantic.DeepEqual(rules, role.Rules) {
		return 0, err
	}
	out := role.DeepCopy()
	out.Rules = rules
	_, err = r.Client.RbacV1().ClusterRoles().Update(ctx, out, metav1.UpdateOptions{})
	return 0, err
}

// union collects the rules, in the order of the roles' names and without repetition.
func (r *reconciler) union(role *rbacv1.ClusterRole) ([]rbacv1.PolicyRule, error) {
	var rules []rbacv1.PolicyRule
	for i := range role.AggregationRule.ClusterRoleSelectors {
		selector, err := metav1.LabelSelectorAsSelector(&role.AggregationRule.ClusterRoleSelectors[i])
		if err != nil {
			return nil, err
		}
		roles, err := r.roles.List(selector)
		if err != nil {
			return nil, err
		}
		slices.SortFunc(roles, func(a, b *rbacv1.ClusterRole) int { return cmp.Compare(a.Name, b.Name) })
		for _, other := range roles {
			if other.Name == role.Name {
				continue
			}
			for _, rule := range other.Rules {
				if !slices.ContainsFunc(rules, func(have rbacv1.PolicyRule) bool { return equality.Semantic.DeepEqual(have, rule) }) {
					rules = append(rules, *rule.DeepCopy())
				}
			}
		}
	}
	return rules, nil
}
