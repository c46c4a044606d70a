package rbac

import (
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/user"
)

// namespaceRoles returns the default roles of kube-system and kube-public.
func namespaceRoles() []rbacv1.Role {
	return []rbacv1.Role{
		// how the API server authenticates, for extension API servers
		role(metav1.NamespaceSystem, "extension-apiserver-authentication-reader",
			named(can(read, "", "configmaps"), "extension-apiserver-authentication")),
		role(metav1.NamespaceSystem, "system::leader-locking-kube-controller-manager", leaderRules()...),
		role(metav1.NamespaceSystem, "system::leader-locking-kube-scheduler", leaderRules()...),
		// bootstrap tokens: the signer reads them and writes cluster-info
		role(metav1.NamespaceSystem, "system:controller:bootstrap-signer",
			can(read, "", "secrets")),
		role(metav1.NamespacePublic, "system:controller:bootstrap-signer",
			can(read, "", "configmaps"),
			named(can("update", "", "configmaps"), "cluster-info"),
			emitEvents),
		role(metav1.NamespaceSystem, "system:controller:token-cleaner",
			can("delete get list watch", "", "secrets"),
			emitEvents),
		// what a machine that joins reads: whom to trust, and how the cluster is set up
		role(metav1.NamespacePublic, "system:periplus:cluster-info",
			named(can("get", "", "configmaps"), "cluster-info")),
		role(metav1.NamespaceSystem, "system:periplus:cluster-config",
			named(can("get", "", "configmaps"), "periplus-config")),
		// deprecated since v1.10, still made
		role(metav1.NamespaceSystem, "system:controller:cloud-provider",
			can("create get list watch", "", "configmaps")),
	}
}

func leaderRules() []rbacv1.PolicyRule {
	const verbs = "create get list update watch"
	return []rbacv1.PolicyRule{
		can(verbs, "coordination.k8s.io", "leases"),
		can(verbs, "coordination.k8s.io", "leasecandidates"),
	}
}

// namespaceRoleBindings returns the bindings of namespaceRoles.
func namespaceRoleBindings() []rbacv1.RoleBinding {
	reader := bindIn(metav1.NamespaceSystem, "extension-apiserver-authentication-reader",
		toUser(user.KubeControllerManager), toUser(user.KubeScheduler))
	reader.Name = "system::extension-apiserver-authentication-reader"
	return []rbacv1.RoleBinding{
		reader,
		bindIn(metav1.NamespaceSystem, "system::leader-locking-kube-controller-manager",
			toUser(user.KubeControllerManager), toAccount("kube-controller-manager"), toAccount("leader-election-controller")),
		bindIn(metav1.NamespaceSystem, "system::leader-locking-kube-scheduler",
			toUser(user.KubeScheduler), toAccount("kube-scheduler")),
		bindIn(metav1.NamespaceSystem, "system:controller:bootstrap-signer", toAccount("bootstrap-signer")),
		bindIn(metav1.NamespacePublic, "system:controller:bootstrap-signer", toAccount("bootstrap-signer")),
		bindIn(metav1.NamespaceSystem, "system:controller:token-cleaner", toAccount("token-cleaner")),
		bindIn(metav1.NamespacePublic, "system:periplus:cluster-info", toGroup(user.AllUnauthenticated), toGroup(user.AllAuthenticated)),
		bindIn(metav1.NamespaceSystem, "system:periplus:cluster-config", toGroup(bootstrappers), toGroup(user.NodesGroup)),
		bindIn(metav1.NamespaceSystem, "system:controller:cloud-provider", toAccount("cloud-provider")),
	}
}

func role(namespace, name string, rules ...rbacv1.PolicyRule) rbacv1.Role {
	return rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Rules: rules}
}

// bindIn returns a role binding of the same name as its role.
func bindIn(namespace, role string, subjects ...rbacv1.Subject) rbacv1.RoleBinding {
	return rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: role},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: role},
		Subjects:   subjects,
	}
}
