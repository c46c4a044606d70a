package rbac

import (
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apiserver/pkg/authentication/user"
)

// bootstrappers is the group of those who present a bootstrap token.
const bootstrappers = "system:bootstrappers"

// joinRoles is for machines that join, and for what runs on nodes besides the kubelet.
func joinRoles() []rbacv1.ClusterRole {
	return []rbacv1.ClusterRole{
		// is there a node of this name already?
		clusterRole("system:periplus:join", can("get", "", "nodes")),
		// a further server gets the secrets of the cluster
		clusterRole("system:periplus:server-join", urls("post", "/periplus/v1/servers")),
		// network policies and names are applied on every node
		clusterRole("system:periplus:node-network",
			can("list watch", "", "namespaces pods"),
			can("list watch", "networking.k8s.io", "networkpolicies")),
	}
}

// joinBindings let bootstrap tokens get a node's first certificate and nodes renew theirs.
func joinBindings() []rbacv1.ClusterRoleBinding {
	return []rbacv1.ClusterRoleBinding{
		bind("system:node-bootstrapper", toGroup(bootstrappers)),
		bind("system:certificates.k8s.io:certificatesigningrequests:nodeclient", toGroup(bootstrappers)),
		bind("system:certificates.k8s.io:certificatesigningrequests:selfnodeclient", toGroup(user.NodesGroup)),
		bind("system:periplus:join", toGroup(bootstrappers)),
		bind("system:periplus:server-join", toGroup(bootstrappers+":periplus:servers")),
		bind("system:periplus:node-network", toGroup(user.NodesGroup), toUser(user.KubeProxy)),
	}
}
