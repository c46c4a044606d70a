package rbac

import rbacv1 "k8s.io/api/rbac/v1"

// userRoles is for people and for everybody.
func userRoles() []rbacv1.ClusterRole {
	return []rbacv1.ClusterRole{
		// everything
		clusterRole("cluster-admin",
			can("*", "*", "*"),
			urls("*", "*")),
		// what a client needs to negotiate versions
		clusterRole("system:discovery",
			urls("get", "/api /api/* /apis /apis/* /healthz /livez /openapi /openapi/* /readyz /version /version/")),
		// what a user may learn about himself
		clusterRole("system:basic-user",
			can("create", "authorization.k8s.io", "selfsubjectaccessreviews selfsubjectrulesreviews"),
			can("create", "authentication.k8s.io", "selfsubjectreviews")),
		// what everybody may know
		clusterRole("system:public-info-viewer",
			urls("get", "/healthz /livez /readyz /version /version/")),
		// metrics and health in detail
		clusterRole("system:monitoring",
			urls("get", "/flagz /healthz /healthz/* /livez /livez/* /metrics /metrics/slis /readyz /readyz/* /statusz"),
			can("get", "", "nodes/metrics")),
		// OIDC discovery of service account tokens; with and without the final slash,
		// as generated clients differ
		clusterRole("system:service-account-issuer-discovery",
			urls("get", "/.well-known/openid-configuration /.well-known/openid-configuration/ /openid/v1/jwks /openid/v1/jwks/")),
		// trust anchors
		clusterRole("system:cluster-trust-bundle-discovery",
			can(read, "certificates.k8s.io", "clustertrustbundles")),
		aggregated("admin", ""),
		aggregated("edit", "admin"),
		aggregated("view", "edit"),
		labelled("admin", clusterRole("system:aggregate-to-admin",
			can("create", "authorization.k8s.io", "localsubjectaccessreviews"),
			can(readWrite, "rbac.authorization.k8s.io", "rolebindings roles"))),
		labelled("edit", clusterRole("system:aggregate-to-edit",
			can(read, "", "pods/attach pods/exec pods/portforward pods/proxy secrets services/proxy"),
			can("impersonate", "", "serviceaccounts"),
			can(write, "", "pods pods/attach pods/exec pods/portforward pods/proxy"),
			can("create", "", "pods/eviction"),
			can(write, "", "configmaps persistentvolumeclaims replicationcontrollers replicationcontrollers/scale secrets",
				"serviceaccounts services services/proxy"),
			can("create", "", "serviceaccounts/token"),
			can(write, ",events.k8s.io", "events"),
			can(write, "apps", "daemonsets deployments deployments/rollback deployments/scale replicasets replicasets/scale",
				"statefulsets statefulsets/scale"),
			can(write, "autoscaling", "horizontalpodautoscalers"),
			can(write, "batch", "cronjobs jobs"),
			can(write, "extensions", "daemonsets deployments deployments/rollback deployments/scale ingresses networkpolicies replicasets",
				"replicasets/scale replicationcontrollers/scale"),
			can(write, "policy", "poddisruptionbudgets"),
			can(write, "networking.k8s.io", "ingresses networkpolicies"),
			can(readWrite, "coordination.k8s.io", "leases"),
			can(write, "resource.k8s.io", "resourceclaims resourceclaimtemplates"))),
		labelled("view", clusterRole("system:aggregate-to-view",
			can(read, "", "configmaps endpoints persistentvolumeclaims persistentvolumeclaims/status pods",
				"replicationcontrollers replicationcontrollers/scale serviceaccounts services services/status"),
			can(read, "", "bindings limitranges namespaces/status pods/log pods/status replicationcontrollers/status",
				"resourcequotas resourcequotas/status"),
			can(read, "", "namespaces"),
			can(read, ",events.k8s.io", "events"),
			can(read, "discovery.k8s.io", "endpointslices"),
			can(read, "apps", "controllerrevisions daemonsets daemonsets/status deployments deployments/scale deployments/status",
				"replicasets replicasets/scale replicasets/status statefulsets statefulsets/scale statefulsets/status"),
			can(read, "autoscaling", "horizontalpodautoscalers horizontalpodautoscalers/status"),
			can(read, "batch", "cronjobs cronjobs/status jobs jobs/status"),
			can(read, "extensions", "daemonsets daemonsets/status deployments deployments/scale deployments/status ingresses",
				"ingresses/status networkpolicies replicasets replicasets/scale replicasets/status",
				"replicationcontrollers/scale"),
			can(read, "policy", "poddisruptionbudgets poddisruptionbudgets/status"),
			can(read, "networking.k8s.io", "ingresses ingresses/status networkpolicies"),
			can(read, "resource.k8s.io", "resourceclaims resourceclaims/status resourceclaimtemplates"))),
	}
}
