package apiserver

import "context"

// startHooks are the parts of a start under the names that upstream gives them, and
// monitors ask for. Here they are one step: the caches, the objects that a cluster
// begins with, and the aggregation layer come up together, and a server serves when
// all of them have (Server.Run).
func startHooks(finished func(context.Context) error) []check {
	names := []string{
		"poststarthook/start-apiserver-admission-initializer",
		"poststarthook/generic-apiserver-start-informers",
		"poststarthook/priority-and-fairness-config-consumer",
		"poststarthook/priority-and-fairness-filter",
		"poststarthook/storage-object-count-tracker-hook",
		"poststarthook/storage-readiness",
		"poststarthook/start-apiextensions-informers",
		"poststarthook/start-apiextensions-controllers",
		"poststarthook/crd-informer-synced",
		"poststarthook/start-system-namespaces-controller",
		"poststarthook/start-cluster-authentication-info-controller",
		"poststarthook/start-service-ip-repair-controllers",
		"poststarthook/rbac/bootstrap-roles",
		"poststarthook/scheduling/bootstrap-system-priority-classes",
		"poststarthook/priority-and-fairness-config-producer",
		"poststarthook/bootstrap-controller",
		"poststarthook/start-kube-aggregator-informers",
		"poststarthook/apiservice-status-local-available-controller",
		"poststarthook/apiservice-status-remote-available-controller",
		"poststarthook/apiservice-registration-controller",
		"poststarthook/apiservice-discovery-controller",
		"poststarthook/kube-apiserver-autoregistration",
		"autoregister-completion",
		"poststarthook/apiservice-openapi-controller",
		"poststarthook/apiservice-openapiv3-controller",
	}
	hooks := make([]check, len(names))
	for i, name := range names {
		hooks[i] = check{name, finished}
	}
	return hooks
}
