package rbac

import (
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/user"
)

var (
	read      = []string{"get", "list", "watch"}
	readWrite = []string{"get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"}
)

func clusterRole(name string, rules ...rbacv1.PolicyRule) rbacv1.ClusterRole {
	return rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: rules}
}

// nodeRules is what kubelets may do (cluster role system:node). Secrets, config
// maps and claims are restricted further by the authorization mode Node.
var nodeRules = []rbacv1.PolicyRule{
	allow(on("authentication.k8s.io", "tokenreviews"), "create"),
	allow(on("authorization.k8s.io", "subjectaccessreviews", "localsubjectaccessreviews"), "create"),
	allow(on("", "services"), read...),
	allow(on("", "nodes"), "create", "get", "list", "watch"),
	allow(on("", "nodes/status"), "update", "patch"),
	allow(on("", "nodes"), "update", "patch"),
	allow(on("", "events"), "create", "update", "patch"),
	allow(on("events.k8s.io", "events"), "create", "update", "patch"),
	allow(on("", "pods"), read...),
	allow(on("", "pods"), "create", "delete"),
	allow(on("", "pods/status"), "update", "patch"),
	allow(on("", "pods/eviction"), "create"),
	allow(on("", "configmaps", "secrets"), read...),
	allow(on("", "persistentvolumeclaims", "persistentvolumes"), "get"),
	allow(on("", "endpoints"), "get"),
	allow(on("certificates.k8s.io", "certificatesigningrequests"), "create", "get", "list", "watch"),
	allow(on("coordination.k8s.io", "leases"), "get", "create", "update", "patch", "delete"),
	allow(on("storage.k8s.io", "volumeattachments"), "get"),
	allow(on("", "serviceaccounts/token"), "create"),
	allow(on("", "persistentvolumeclaims/status"), "get", "update", "patch"),
	allow(on("storage.k8s.io", "csidrivers"), read...),
	allow(on("storage.k8s.io", "csinodes"), "get", "create", "update", "patch", "delete"),
	allow(on("node.k8s.io", "runtimeclasses"), read...),
	allow(on("resource.k8s.io", "resourceclaims"), "get"),
	allow(on("resource.k8s.io", "resourceslices"), "get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"),
}

func clusterRoles() []rbacv1.ClusterRole {
	return []rbacv1.ClusterRole{
		clusterRole("cluster-admin",
			rbacv1.PolicyRule{Verbs: []string{"*"}, APIGroups: []string{"*"}, Resources: []string{"*"}},
			rbacv1.PolicyRule{Verbs: []string{"*"}, NonResourceURLs: []string{"*"}}),
		clusterRole("system:discovery", rbacv1.PolicyRule{Verbs: []string{"get"}, NonResourceURLs: []string{
			"/livez", "/readyz", "/healthz", "/version", "/version/", "/openapi", "/openapi/*", "/api", "/api/*", "/apis", "/apis/*"}}),
		clusterRole("system:basic-user",
			allow(on("authorization.k8s.io", "selfsubjectaccessreviews", "selfsubjectrulesreviews"), "create"),
			allow(on("authentication.k8s.io", "selfsubjectreviews"), "create")),
		clusterRole("system:public-info-viewer", rbacv1.PolicyRule{Verbs: []string{"get"}, NonResourceURLs: []string{
			"/livez", "/readyz", "/healthz", "/version", "/version/"}}),
		clusterRole("system:node", nodeRules...),
	}
}

func clusterRoleBindings() []rbacv1.ClusterRoleBinding {
	return []rbacv1.ClusterRoleBinding{
		bind("cluster-admin", toGroup(user.SystemPrivilegedGroup)),
		bind("system:discovery", toGroup(user.AllAuthenticated)),
		bind("system:basic-user", toGroup(user.AllAuthenticated)),
		bind("system:public-info-viewer", toGroup(user.AllAuthenticated), toGroup(user.AllUnauthenticated)),
		bind("system:node"),
	}
}

func namespaceRoles() []rbacv1.Role               { return nil }
func namespaceRoleBindings() []rbacv1.RoleBinding { return nil }
