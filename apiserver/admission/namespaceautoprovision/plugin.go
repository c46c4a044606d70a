package namespaceautoprovision

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/periplus/periplus/apiserver/admission"
	"github.com/periplus/periplus/apiserver/registry"
)

// Name is the plug-in's.
const Name = "NamespaceAutoProvision"

var namespaces = corev1.SchemeGroupVersion.WithResource("namespaces")

// Objects is what the plug-in reads and makes.
type Objects interface {
	registry.Reader
	// Make creates an object on the server's own behalf.
	Make(ctx context.Context, gvr schema.GroupVersionResource, obj runtime.Object) error
}

type plugin struct{ objects Objects }

var _ admission.Mutator = plugin{}

// New returns the plug-in.
func New(objects Objects) admission.Plugin { return plugin{objects} }

func (plugin) Name() string { return Name }

// Admit implements admission.Mutator.
func (p plugin) Admit(ctx context.Context, a *admission.Attributes) error {
	if a.DryRun || a.Operation != admission.Create || a.Namespace == "" || a.Resource.GroupResource() == namespaces.GroupResource() {
		return nil
	}
	_, err := p.objects.Get(namespaces, "", a.Namespace)
	if !apierrors.IsNotFound(err) {
		return err
	}
	err = p.objects.Make(ctx, namespaces, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: a.Namespace}})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return apierrors.NewForbidden(a.Resource.GroupResource(), a.Name, err)
	}
	return nil
}
