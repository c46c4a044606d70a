package core

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/periplus/periplus/apiserver/registry"
)

// Resources lists the kinds of the group.
func Resources(env registry.Env) []*registry.Resource {
	return []*registry.Resource{
		pods(),
		namespaces(),
		nodes(),
		services(env),
		endpoints(),
		configMaps(),
		secrets(),
		serviceAccounts(),
		events(),
		replicationControllers(),
		podTemplates(),
		limitRanges(),
		resourceQuotas(),
		persistentVolumes(),
		persistentVolumeClaims(),
		componentStatuses(),
		bindings(),
	}
}

// version is the group and version in which the kinds are stored.
var version = corev1.SchemeGroupVersion
