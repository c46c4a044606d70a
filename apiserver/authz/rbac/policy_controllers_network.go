package rbac

import rbacv1 "k8s.io/api/rbac/v1"

// networkControllers is for the controllers of Services and routes. Those that own
// endpoints through a Service set its finalizers (blockOwnerDeletion).
func networkControllers() []rbacv1.ClusterRole {
	return []rbacv1.ClusterRole{
		controllerRole("endpoint-controller",
			can(read, "", "pods services"),
			can("create delete get list update watch", "", "endpoints"),
			can("create", "", "endpoints/restricted"),
			emitEvents),
		controllerRole("endpointslice-controller",
			can(read, "", "nodes pods services"),
			can("update", "", "services/finalizers"),
			can("create delete get list update watch", "discovery.k8s.io", "endpointslices"),
			emitEvents),
		controllerRole("endpointslicemirroring-controller",
			can(read, "", "endpoints services"),
			can("update", "", "services/finalizers"),
			can("update", "", "endpoints/finalizers"),
			can("create delete get list update watch", "discovery.k8s.io", "endpointslices"),
			emitEvents),
		controllerRole("route-controller",
			can("list watch", "", "nodes"),
			can("patch", "", "nodes/status"),
			emitEvents),
		controllerRole("service-cidrs-controller",
			can(readUpdate, "networking.k8s.io", "servicecidrs"),
			can("patch update", "networking.k8s.io", "servicecidrs/finalizers"),
			can("patch update", "networking.k8s.io", "servicecidrs/status"),
			can(read, "networking.k8s.io", "ipaddresses"),
			emitEvents),
		controllerRole("service-controller",
			can(read, "", "services"),
			can("patch update", "", "services/status"),
			can("list watch", "", "nodes"),
			emitEvents),
	}
}
