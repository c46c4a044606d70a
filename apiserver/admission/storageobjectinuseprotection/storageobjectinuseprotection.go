package storageobjectinuseprotection

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/periplus/periplus/apiserver/admission"
)

// The finalizers.
const (
	ofClaims  = "kubernetes.io/pvc-protection"
	ofVolumes = "kubernetes.io/pv-protection"
)

type plugin struct{}

var _ admission.Mutator = plugin{}

// New returns the plug-in.
func New() admission.Plugin { return plugin{} }

func (plugin) Name() string { return "StorageObjectInUseProtection" }

// Admit implements admission.Mutator.
func (plugin) Admit(_ context.Context, a *admission.Attributes) error {
	if a.Operation != admission.Create || a.Subresource != "" {
		return nil
	}
	switch o := a.Object.(type) {
	case *corev1.PersistentVolumeClaim:
		protect(o, ofClaims)
	case *corev1.PersistentVolume:
		protect(o, ofVolumes)
	}
	return nil
}

func protect(o metav1.Object, finalizer string) {
	if have := o.GetFinalizers(); !slices.Contains(have, finalizer) {
		o.SetFinalizers(append(slices.Clone(have), finalizer))
	}
}
