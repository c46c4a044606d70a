package persistentvolumeclaimresize

import (
	"context"
	"errors"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/component-helpers/storage/volume"

	"github.com/periplus/periplus/apiserver/admission"
	"github.com/periplus/periplus/apiserver/registry"
)

var classes = storagev1.SchemeGroupVersion.WithResource("storageclasses")

type plugin struct{ objects registry.Reader }

var _ admission.Validator = plugin{}

// New returns the plug-in.
func New(objects registry.Reader) admission.Plugin { return plugin{objects} }

func (plugin) Name() string { return "PersistentVolumeClaimResize" }

// Validate implements admission.Validator.
func (p plugin) Validate(_ context.Context, a *admission.Attributes) error {
	claim, ok := a.Object.(*corev1.PersistentVolumeClaim)
	old, had := a.Old.(*corev1.PersistentVolumeClaim)
	if !ok || !had || a.Operation != admission.Update || a.Subresource != "" {
		return nil
	}
	size, before := claim.Spec.Resources.Requests[corev1.ResourceStorage], old.Spec.Resources.Requests[corev1.ResourceStorage]
	if size.Cmp(before) <= 0 {
		return nil
	}
	refuse := func(text string) error {
		return apierrors.NewForbidden(a.Resource.GroupResource(), a.Name, errors.New(text))
	}
	if old.Status.Phase != corev1.ClaimBound {
		return refuse("Only bound persistent volume claims can be expanded")
	}
	// A claim without a class was bound by hand; its volume does not grow.
	name := volume.GetPersistentVolumeClaimClass(claim)
	if name != "" {
		if obj, err := p.objects.Get(classes, "", name); err == nil {
			if allowed := obj.(*storagev1.StorageClass).AllowVolumeExpansion; allowed != nil && *allowed {
				return nil
			}
		}
	}
	return refuse("only dynamically provisioned pvc can be resized and the storageclass that provisions the pvc must support resize")
}
