package namespaceexists

import (
	"context"

	corev1 "k8s.io/api/core/v1"

	"github.com/periplus/periplus/apiserver/admission"
	"github.com/periplus/periplus/apiserver/registry"
)

// Name is the plug-in's.
const Name = "NamespaceExists"

var namespaces = corev1.SchemeGroupVersion.WithResource("namespaces")

type plugin struct{ objects registry.Reader }

var _ admission.Validator = plugin{}

// New returns the plug-in.
func New(objects registry.Reader) admission.Plugin { return plugin{objects} }

func (plugin) Name() string { return Name }

// Validate implements admission.Validator.
func (p plugin) Validate(_ context.Context, a *admission.Attributes) error {
	if a.Operation == admission.Connect || a.Namespace == "" || a.Resource.GroupResource() == namespaces.GroupResource() {
		return nil
	}
	_, err := p.objects.Get(namespaces, "", a.Namespace)
	return err
}
