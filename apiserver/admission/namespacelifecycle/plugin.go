package namespacelifecycle

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/periplus/periplus/apiserver/admission"
	"github.com/periplus/periplus/apiserver/registry"
)

var namespaces = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}

// immortal namespaces cannot be deleted.
var immortal = map[string]bool{metav1.NamespaceDefault: true, metav1.NamespaceSystem: true, metav1.NamespacePublic: true}

type plugin struct{ objects registry.Reader }

var _ admission.Mutator = plugin{}

// New returns the plug-in.
func New(objects registry.Reader) admission.Plugin { return plugin{objects} }

func (plugin) Name() string { return "NamespaceLifecycle" }

// Admit implements admission.Mutator.
func (p plugin) Admit(_ context.Context, a *admission.Attributes) error {
	if a.Resource == namespaces {
		if a.Operation == admission.Delete && immortal[a.Name] {
			return apierrors.NewForbidden(a.Resource.GroupResource(), a.Name, fmt.Errorf("this namespace may not be deleted"))
		}
		return nil
	}
	if a.Operation != admission.Create || a.Namespace == "" || a.Resource.Group == "authorization.k8s.io" {
		return nil
	}
	obj, err := p.objects.Get(namespaces, "", a.Namespace)
	if err != nil {
		return err
	}
	ns := obj.(*corev1.Namespace)
	if ns.Status.Phase != corev1.NamespaceTerminating {
		return nil
	}
	refusal := apierrors.NewForbidden(a.Resource.GroupResource(), a.Name, fmt.Errorf("unable to create new content in namespace %s because it is being terminated", a.Namespace))
	refusal.ErrStatus.Details.Causes = append(refusal.ErrStatus.Details.Causes, metav1.StatusCause{
		Type: corev1.NamespaceTerminatingCause, Message: fmt.Sprintf("namespace %s is being terminated", a.Namespace), Field: "metadata.namespace",
	})
	return refusal
}
