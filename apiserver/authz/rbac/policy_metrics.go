package rbac

import rbacv1 "k8s.io/api/rbac/v1"

// metricsRoles is what metrics-server ships for its readers: whoever may view a
// namespace may see what its pods use.
func metricsRoles() []rbacv1.ClusterRole {
	reader := clusterRole("system:aggregated-metrics-reader", can(read, "metrics.k8s.io", "pods nodes"))
	reader.Labels = map[string]string{}
	for _, into := range []string{"admin", "edit", "view"} {
		reader.Labels[aggregateLabel+into] = "true"
	}
	return []rbacv1.ClusterRole{reader}
}
