package rbac

import rbacv1 "k8s.io/api/rbac/v1"

// componentRoles is for the other components.
func componentRoles() []rbacv1.ClusterRole {
	return []rbacv1.ClusterRole{
		// an extension API server asks who somebody is and what he may do
		clusterRole("system:auth-delegator",
			can("create", "authentication.k8s.io", "tokenreviews"),
			can("create", "authorization.k8s.io", "subjectaccessreviews")),
		clusterRole("system:heapster",
			can(read, "", "events namespaces nodes pods"),
			can(read, "extensions", "deployments")),
		// which Services stand behind APIServices
		clusterRole("system:kube-aggregator",
			can(read, "", "endpoints services")),
		// leader election, the informers that all controllers share, and the making of
		// the accounts under which they work
		clusterRole("system:kube-controller-manager",
			emitEvents,
			can("create", "coordination.k8s.io", "leases"),
			named(can("get update", "coordination.k8s.io", "leases"), "kube-controller-manager"),
			can("create", "", "secrets serviceaccounts"),
			can("delete", "", "secrets"),
			can("get", "", "configmaps namespaces secrets serviceaccounts"),
			can("update", "", "secrets serviceaccounts"),
			can("create", "authentication.k8s.io", "tokenreviews"),
			can("create", "authorization.k8s.io", "subjectaccessreviews"),
			can("list watch", "*", "*"),
			can("create", "", "serviceaccounts/token")),
		clusterRole("system:kube-dns",
			can("list watch", "", "endpoints services")),
		clusterRole("system:kube-scheduler",
			emitEvents,
			can("create", "coordination.k8s.io", "leases"),
			named(can("get list update watch", "coordination.k8s.io", "leases"), "kube-scheduler"),
			can(readWrite, "coordination.k8s.io", "leasecandidates"),
			can(read, "", "nodes"),
			can("delete get list watch", "", "pods"),
			can("create", "", "bindings pods/binding"),
			can("patch update", "", "pods/status"),
			can(read, "", "replicationcontrollers services"),
			can(read, "apps,extensions", "replicasets"),
			can(read, "apps", "statefulsets"),
			can(read, "policy", "poddisruptionbudgets"),
			can(read, "", "persistentvolumeclaims persistentvolumes"),
			can("create", "authentication.k8s.io", "tokenreviews"),
			can("create", "authorization.k8s.io", "subjectaccessreviews"),
			can(read, "storage.k8s.io", "csinodes"),
			can(read, "storage.k8s.io", "volumeattachments"),
			can(read, "", "namespaces"),
			can(read, "storage.k8s.io", "csidrivers"),
			can(read, "storage.k8s.io", "csistoragecapacities"),
			can(read, "resource.k8s.io", "deviceclasses"),
			can(readUpdate, "resource.k8s.io", "resourceclaims"),
			can(readUpdate, "resource.k8s.io", "resourceclaims/status"),
			can("update", "", "pods/finalizers"),
			can(read, "resource.k8s.io", "resourceslices"),
			can("create delete", "resource.k8s.io", "resourceclaims"),
			can(read, "resource.k8s.io", "devicetaintrules"),
			can("patch update", "resource.k8s.io", "resourceclaims/binding")),
		// an external provisioner; it locks claims by annotation
		clusterRole("system:persistent-volume-provisioner",
			can("create delete get list watch", "", "persistentvolumes"),
			can("get list update watch", "", "persistentvolumeclaims"),
			can(read, "storage.k8s.io", "storageclasses"),
			can("watch", "", "events"),
			emitEvents),
		clusterRole("system:volume-scheduler",
			can(readUpdate, "", "persistentvolumes"),
			can(read, "storage.k8s.io", "storageclasses"),
			can(readUpdate, "", "persistentvolumeclaims")),
		// the steps of the journey that components report
		clusterRole("system:periplus:journey",
			urls("post", "/periplus/v1/spans")),
	}
}

// certificateRoles is for those who have certificates approved.
func certificateRoles() []rbacv1.ClusterRole {
	return []rbacv1.ClusterRole{
		clusterRole("system:certificates.k8s.io:certificatesigningrequests:nodeclient",
			can("create", "certificates.k8s.io", "certificatesigningrequests/nodeclient")),
		clusterRole("system:certificates.k8s.io:certificatesigningrequests:selfnodeclient",
			can("create", "certificates.k8s.io", "certificatesigningrequests/selfnodeclient")),
		clusterRole("system:certificates.k8s.io:kube-apiserver-client-approver",
			named(can("approve", "certificates.k8s.io", "signers"), "kubernetes.io/kube-apiserver-client")),
		clusterRole("system:certificates.k8s.io:kube-apiserver-client-kubelet-approver",
			named(can("approve", "certificates.k8s.io", "signers"), "kubernetes.io/kube-apiserver-client-kubelet")),
		clusterRole("system:certificates.k8s.io:kubelet-serving-approver",
			named(can("approve", "certificates.k8s.io", "signers"), "kubernetes.io/kubelet-serving")),
		clusterRole("system:certificates.k8s.io:legacy-unknown-approver",
			named(can("approve", "certificates.k8s.io", "signers"), "kubernetes.io/legacy-unknown")),
	}
}
