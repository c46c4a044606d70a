package rbac

import (
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	"k8s.io/apiserver/pkg/authentication/user"
)

// The default policy is that of Kubernetes v1.37 with its default feature
// gates, roles of our own (system:periplus:…), and the one that comes with
// metrics-server. Lists are sorted and rules are in upstream's order, so that a
// cluster that was made by upstream stays as it is.
//
//	policy_users.go              people, everybody, and what admin, edit and view are made of
//	policy_nodes.go              nodes and what runs on them
//	policy_components.go         the other components, approvers of certificates
//	policy_controllers_*.go      one role a controller
//	policy_metrics.go            readers of metrics
//	policy_namespaces.go         roles inside kube-system and kube-public

// Verbs that often go together.
const (
	read       = "get list watch"
	write      = "create delete deletecollection patch update"
	readUpdate = "get list patch update watch"
	readWrite  = "create delete deletecollection get list patch update watch"
)

// emitEvents lets a component record events.
var emitEvents = can("create patch update", ",events.k8s.io", "events")

// clusterRoles returns the default cluster roles.
func clusterRoles() []rbacv1.ClusterRole {
	return slices.Concat(userRoles(), nodeRoles(), componentRoles(), certificateRoles(), joinRoles(), metricsRoles(), controllerRoles())
}

func controllerRoles() []rbacv1.ClusterRole {
	return slices.Concat(workloadsControllers(), networkControllers(), storageControllers(), clusterControllers())
}

// clusterRoleBindings returns the default bindings. Those of controllers go to
// the service account of the same name in kube-system.
func clusterRoleBindings() []rbacv1.ClusterRoleBinding {
	bindings := []rbacv1.ClusterRoleBinding{
		bind("cluster-admin", toGroup(user.SystemPrivilegedGroup)),
		bind("system:monitoring", toGroup(user.MonitoringGroup)),
		bind("system:discovery", toGroup(user.AllAuthenticated)),
		bind("system:basic-user", toGroup(user.AllAuthenticated)),
		bind("system:public-info-viewer", toGroup(user.AllAuthenticated), toGroup(user.AllUnauthenticated)),
		bind("system:node-proxier", toUser(user.KubeProxy), toGroup(user.NodesGroup)),
		bind("system:kube-controller-manager", toUser(user.KubeControllerManager)),
		bind("system:kube-dns", toAccount("kube-dns")),
		bind("system:kube-scheduler", toUser(user.KubeScheduler)),
		bind("system:volume-scheduler", toUser(user.KubeScheduler)),
		// Nodes are answered by the authorization mode Node; the binding is kept
		// without subjects, as upstream keeps it.
		bind("system:node"),
		bind("system:service-account-issuer-discovery", toGroup(serviceaccount.AllServiceAccountsGroup)),
		bind("system:cluster-trust-bundle-discovery", toGroup(serviceaccount.AllServiceAccountsGroup)),
		bind("system:periplus:journey", toGroup(user.NodesGroup),
			toUser(user.KubeControllerManager), toUser(user.KubeScheduler), toUser(user.KubeProxy)),
	}
	bindings = append(bindings, joinBindings()...)
	for _, role := range controllerRoles() {
		bindings = append(bindings, bind(role.Name, toAccount(strings.TrimPrefix(role.Name, controllerPrefix))))
	}
	return bindings
}

const controllerPrefix = "system:controller:"

func clusterRole(name string, rules ...rbacv1.PolicyRule) rbacv1.ClusterRole {
	return rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: rules}
}

func controllerRole(controller string, rules ...rbacv1.PolicyRule) rbacv1.ClusterRole {
	return clusterRole(controllerPrefix+controller, rules...)
}

const aggregateLabel = "rbac.authorization.k8s.io/aggregate-to-"

// labelled makes r part of the aggregated role into.
func labelled(into string, r rbacv1.ClusterRole) rbacv1.ClusterRole {
	r.Labels = map[string]string{aggregateLabel + into: "true"}
	return r
}

// aggregated returns a role whose rules are collected by label, and which may be
// part of another one itself.
func aggregated(name, into string) rbacv1.ClusterRole {
	r := clusterRole(name)
	if into != "" {
		r = labelled(into, r)
	}
	r.AggregationRule = &rbacv1.AggregationRule{ClusterRoleSelectors: []metav1.LabelSelector{
		{MatchLabels: map[string]string{aggregateLabel + name: "true"}},
	}}
	return r
}

// can is a rule about resources. Groups are separated by commas (the core
// group is ""), verbs and resources by spaces.
func can(verbs, groups string, resources ...string) rbacv1.PolicyRule {
	r := rbacv1.PolicyRule{Verbs: strings.Fields(verbs), APIGroups: strings.Split(groups, ",")}
	for _, list := range resources {
		r.Resources = append(r.Resources, strings.Fields(list)...)
	}
	return r
}

// named restricts a rule to objects of the given names.
func named(r rbacv1.PolicyRule, names ...string) rbacv1.PolicyRule {
	r.ResourceNames = names
	return r
}

// urls is a rule about paths that are no resources.
func urls(verbs, paths string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{Verbs: strings.Fields(verbs), NonResourceURLs: strings.Fields(paths)}
}
