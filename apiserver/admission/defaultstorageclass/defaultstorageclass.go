package defaultstorageclass

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/component-helpers/storage/volume"

	"github.com/periplus/periplus/apiserver/admission"
	"github.com/periplus/periplus/apiserver/registry"
)

var classes = storagev1.SchemeGroupVersion.WithResource("storageclasses")

// annotation marks the default class.
const annotation = "storageclass.kubernetes.io/is-default-class"

type plugin struct{ objects registry.Reader }

var _ admission.Mutator = plugin{}

// New returns the plug-in.
func New(objects registry.Reader) admission.Plugin { return plugin{objects} }

func (plugin) Name() string { return "DefaultStorageClass" }

// Admit implements admission.Mutator.
func (p plugin) Admit(_ context.Context, a *admission.Attributes) error {
	claim, ok := a.Object.(*corev1.PersistentVolumeClaim)
	if !ok || a.Operation != admission.Create || a.Subresource != "" || volume.PersistentVolumeClaimHasClass(claim) {
		return nil
	}
	list, err := p.objects.List(classes, "")
	if err != nil {
		return apierrors.NewForbidden(a.Resource.GroupResource(), a.Name, err)
	}
	var best *storagev1.StorageClass
	for _, obj := range list {
		if c := obj.(*storagev1.StorageClass); c.Annotations[annotation] == "true" && (best == nil || newer(c, best)) {
			best = c
		}
	}
	if best != nil {
		claim.Spec.StorageClassName = &best.Name
	}
	return nil
}

// newer decides between several defaults: the newest counts, then the first by name.
func newer(a, b *storagev1.StorageClass) bool {
	if a.CreationTimestamp.UnixNano() != b.CreationTimestamp.UnixNano() {
		return a.CreationTimestamp.After(b.CreationTimestamp.Time)
	}
	return a.Name < b.Name
}
