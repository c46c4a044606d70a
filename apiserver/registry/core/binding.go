package core

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/periplus/periplus/apiserver/registry"
	"github.com/periplus/periplus/apiserver/registry/kind"
)

// bindings are the old way of POSTing to pods/binding (Resource.Create).
func bindings() *registry.Resource {
	return &registry.Resource{
		GVR:        version.WithResource("bindings"),
		Kind:       "Binding",
		Singular:   "binding",
		Namespaced: true,
		New:        kind.Make[corev1.Binding],
		Verbs:      []string{"create"},
		Strategy:   registry.Funcs[*corev1.Binding]{},
	}
}
