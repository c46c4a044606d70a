package rbac

import rbacv1 "k8s.io/api/rbac/v1"

// nodeRules is what kubelets may do (cluster role system:node). The
// authorization mode Node allows secrets, config maps, claims, tokens and the
// like only for the pods of the node that asks; the admission plug-in
// NodeRestriction keeps a node to its own objects.
func nodeRules() []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{
		can("create", "authentication.k8s.io", "tokenreviews"),
		can("create", "authorization.k8s.io", "localsubjectaccessreviews subjectaccessreviews"),
		can(read, "", "services"),
		can("create get list watch", "", "nodes"),
		can("patch update", "", "nodes/status"),
		can("patch update", "", "nodes"),
		emitEvents,
		can(read, "", "pods"),
		can("create delete", "", "pods"),
		can("patch update", "", "pods/status"),
		can("create", "", "pods/eviction"),
		can(read, "", "configmaps secrets"),
		can("get", "", "persistentvolumeclaims persistentvolumes"),
		can("get", "", "endpoints"),
		can("create get list watch", "certificates.k8s.io", "certificatesigningrequests"),
		can("create delete get patch update", "coordination.k8s.io", "leases"),
		can("get", "storage.k8s.io", "volumeattachments"),
		can("create", "", "serviceaccounts/token"),
		can("get patch update", "", "persistentvolumeclaims/status"),
		can(read, "storage.k8s.io", "csidrivers"),
		can("create delete get patch update", "storage.k8s.io", "csinodes"),
		can(read, "node.k8s.io", "runtimeclasses"),
		can("get", "resource.k8s.io", "resourceclaims"),
		can("deletecollection", "resource.k8s.io", "resourceslices"),
		can(read, "certificates.k8s.io", "clustertrustbundles"),
		can("get", "", "serviceaccounts"),
		can("create get list watch", "certificates.k8s.io", "podcertificaterequests"),
	}
}

// nodeRoles is for nodes and for what runs on them.
func nodeRoles() []rbacv1.ClusterRole {
	return []rbacv1.ClusterRole{
		clusterRole("system:node", nodeRules()...),
		// a node asks for its first client certificate
		clusterRole("system:node-bootstrapper",
			can("create get list watch", "certificates.k8s.io", "certificatesigningrequests")),
		// bound to nobody: its place differs from cluster to cluster
		clusterRole("system:node-problem-detector",
			can("get", "", "nodes"),
			can("patch", "", "nodes/status"),
			emitEvents),
		// kube-proxy
		clusterRole("system:node-proxier",
			can("list watch", "", "endpoints services"),
			can(read, "", "nodes"),
			emitEvents,
			can("list watch", "networking.k8s.io", "servicecidrs"),
			can("list watch", "discovery.k8s.io", "endpointslices")),
		// the whole API of kubelets
		clusterRole("system:kubelet-api-admin",
			can(read, "", "nodes"),
			can("proxy", "", "nodes"),
			can("*", "", "nodes/log nodes/metrics nodes/proxy nodes/stats"),
			can("*", "", "nodes/configz nodes/healthz nodes/pods")),
	}
}
