package core

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/periplus/periplus/apiserver/registry"
	"github.com/periplus/periplus/apiserver/registry/kind"
)

// componentStatuses are computed by the server (Resource.Live).
func componentStatuses() *registry.Resource {
	return &registry.Resource{
		GVR:        version.WithResource("componentstatuses"),
		Kind:       "ComponentStatus",
		Singular:   "componentstatus",
		ShortNames: []string{"cs"},
		New:        kind.Make[corev1.ComponentStatus],
		NewList:    kind.Make[corev1.ComponentStatusList],
		Strategy:   registry.Funcs[*corev1.ComponentStatus]{},
		Verbs:      []string{"get", "list"},
		Deprecated: "v1 ComponentStatus is deprecated in v1.19+",
	}
}
