package storage

import (
	"context"
	"fmt"
	"math"

	storagev1 "k8s.io/api/storage/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/periplus/periplus/apiserver/validation"
)

const (
	maxAttachmentMetadata = 256 << 10
	maxVolumeError        = 1024
	maxNodeID             = 256
	minTokenLife          = 10 * 60
)

func validateCSIDriver(_ context.Context, d *storagev1.CSIDriver) field.ErrorList {
	at, spec := field.NewPath("spec"), &d.Spec
	var errs field.ErrorList
	for _, b := range []struct {
		value *bool
		name  string
	}{{spec.AttachRequired, "attachedRequired"}, {spec.PodInfoOnMount, "podInfoOnMount"}, {spec.StorageCapacity, "storageCapacity"}, {spec.SELinuxMount, "seLinuxMount"}} {
		if b.value == nil {
			errs = append(errs, field.Required(at.Child(b.name), ""))
		}
	}
	if p := spec.FSGroupPolicy; p != nil {
		switch *p {
		case storagev1.ReadWriteOnceWithFSTypeFSGroupPolicy, storagev1.FileFSGroupPolicy, storagev1.NoneFSGroupPolicy:
		default:
			errs = append(errs, field.NotSupported(at.Child("fsGroupPolicy"), *p, []storagev1.FSGroupPolicy{storagev1.FileFSGroupPolicy, storagev1.NoneFSGroupPolicy, storagev1.ReadWriteOnceWithFSTypeFSGroupPolicy}))
		}
	}
	errs = append(errs, tokenRequests(spec.TokenRequests, at.Child("tokenRequests"))...)
	if spec.ServiceAccountTokenInSecrets != nil && len(spec.TokenRequests) == 0 {
		errs = append(errs, field.Invalid(at.Child("serviceAccountTokenInSecrets"), spec.ServiceAccountTokenInSecrets, "serviceAccountTokenInSecrets is set but no tokenRequests are specified"))
	}
	for _, m := range spec.VolumeLifecycleModes {
		if m != storagev1.VolumeLifecyclePersistent && m != storagev1.VolumeLifecycleEphemeral {
			errs = append(errs, field.NotSupported(at.Child("volumeLifecycleModes"), m, []storagev1.VolumeLifecycleMode{storagev1.VolumeLifecyclePersistent, storagev1.VolumeLifecycleEphemeral}))
		}
	}
	if p := spec.NodeAllocatableUpdatePeriodSeconds; p != nil && *p < 10 {
		errs = append(errs, field.Invalid(at.Child("nodeAllocatableUpdatePeriodSeconds"), *p, "must be greater than or equal to 10 seconds"))
	}
	return errs
}

func tokenRequests(list []storagev1.TokenRequest, at *field.Path) (errs field.ErrorList) {
	seen := map[string]bool{}
	for i, r := range list {
		p := at.Index(i)
		if seen[r.Audience] {
			errs = append(errs, field.Duplicate(p.Child("audience"), r.Audience))
			continue
		}
		seen[r.Audience] = true
		switch s := r.ExpirationSeconds; {
		case s == nil:
		case *s < minTokenLife:
			errs = append(errs, field.Invalid(p.Child("expirationSeconds"), *s, "may not specify a duration less than 10 minutes"))
		case *s > 1<<32:
			errs = append(errs, field.Invalid(p.Child("expirationSeconds"), *s, "may not specify a duration larger than 2^32 seconds"))
		}
	}
	return errs
}

func validateCSIDriverUpdate(ctx context.Context, d, old *storagev1.CSIDriver) field.ErrorList {
	at := field.NewPath("spec")
	errs := validateCSIDriver(ctx, d)
	errs = append(errs, validation.Immutable(d.Spec.AttachRequired, old.Spec.AttachRequired, at.Child("attachedRequired"))...)
	return append(errs, validation.Immutable(d.Spec.VolumeLifecycleModes, old.Spec.VolumeLifecycleModes, at.Child("volumeLifecycleModes"))...)
}

func validateCSINode(_ context.Context, n *storagev1.CSINode) (errs field.ErrorList) {
	names := map[string]bool{}
	for i, d := range n.Spec.Drivers {
		at := field.NewPath("spec", "drivers").Index(i)
		errs = append(errs, validation.CSIDriverName(d.Name, at.Child("name"))...)
		if d.NodeID == "" {
			errs = append(errs, field.Required(at.Child("nodeID"), d.NodeID))
		}
		if len(d.NodeID) > maxNodeID {
			errs = append(errs, field.Invalid(at.Child("nodeID"), d.NodeID, fmt.Sprintf("must be %d characters or less", maxNodeID)))
		}
		if d.Allocatable != nil && d.Allocatable.Count != nil {
			errs = append(errs, validation.Nonnegative(int64(*d.Allocatable.Count), at.Child("allocatable", "count"))...)
		}
		if names[d.Name] {
			errs = append(errs, field.Duplicate(at.Child("name"), d.Name))
		}
		names[d.Name] = true
		keys := map[string]bool{}
		for _, key := range d.TopologyKeys {
			if key == "" {
				errs = append(errs, field.Required(at, key))
			}
			if keys[key] {
				errs = append(errs, field.Duplicate(at, key))
			}
			keys[key] = true
			errs = append(errs, validation.QualifiedName(key, at)...)
		}
	}
	return errs
}

// validateCSINodeUpdate lets drivers come and go; what one says stays, but for how
// many volumes the node takes.
func validateCSINodeUpdate(ctx context.Context, n, old *storagev1.CSINode) field.ErrorList {
	errs := validateCSINode(ctx, n)
	for _, before := range old.Spec.Drivers {
		for _, now := range n.Spec.Drivers {
			if now.Name == before.Name {
				now.Allocatable, before.Allocatable = nil, nil
				errs = append(errs, validation.Immutable(now, before, field.NewPath("spec", "drivers"))...)
			}
		}
	}
	return errs
}

func validateVolumeAttachment(_ context.Context, va *storagev1.VolumeAttachment) field.ErrorList {
	at := field.NewPath("spec")
	return append(validation.DriverName(va.Spec.Attacher, at.Child("attacher")), attachment(va, at)...)
}

func attachment(va *storagev1.VolumeAttachment, at *field.Path) (errs field.ErrorList) {
	source, p := va.Spec.Source, at.Child("source")
	switch {
	case source.InlineVolumeSpec == nil && source.PersistentVolumeName == nil:
		errs = append(errs, field.Required(p, "must specify exactly one of inlineVolumeSpec and persistentVolumeName"))
	case source.InlineVolumeSpec != nil && source.PersistentVolumeName != nil:
		errs = append(errs, field.Forbidden(p, "must specify exactly one of inlineVolumeSpec and persistentVolumeName"))
	case source.PersistentVolumeName != nil && *source.PersistentVolumeName == "":
		errs = append(errs, field.Required(p.Child("persistentVolumeName"), "must specify non empty persistentVolumeName"))
	case source.InlineVolumeSpec != nil:
		errs = append(errs, validation.InlineVolumeSpec(source.InlineVolumeSpec, p.Child("inlineVolumeSpec"))...)
	}
	for _, msg := range apivalidation.NameIsDNSSubdomain(va.Spec.NodeName, false) {
		errs = append(errs, field.Invalid(at.Child("nodeName"), va.Spec.NodeName, msg))
	}
	if name := source.PersistentVolumeName; name != nil {
		for _, msg := range apivalidation.NameIsDNSSubdomain(*name, false) {
			errs = append(errs, field.Invalid(field.NewPath("spec.source.persistentVolumeName"), *name, msg))
		}
	}
	return append(errs, attachmentStatus(&va.Status)...)
}

func attachmentStatus(s *storagev1.VolumeAttachmentStatus) (errs field.ErrorList) {
	at, size := field.NewPath("status"), 0
	for k, v := range s.AttachmentMetadata {
		size += len(k) + len(v)
	}
	if size > maxAttachmentMetadata {
		errs = append(errs, field.TooLong(at.Child("attachmentMetadata"), "", maxAttachmentMetadata))
	}
	for name, e := range map[string]*storagev1.VolumeError{"attachError": s.AttachError, "detachError": s.DetachError} {
		if e == nil {
			continue
		}
		if len(e.Message) > maxVolumeError {
			errs = append(errs, field.TooLong(at.Child(name, "message"), "", maxVolumeError))
		}
		if e.ErrorCode != nil && *e.ErrorCode < 0 {
			errs = append(errs, field.Invalid(at.Child(name, "errorCode"), *e.ErrorCode, utilvalidation.InclusiveRangeError(0, math.MaxInt32)))
		}
	}
	return errs
}

func validateVolumeAttachmentUpdate(_ context.Context, va, old *storagev1.VolumeAttachment) field.ErrorList {
	at := field.NewPath("spec")
	errs := append(validation.CSIDriverName(va.Spec.Attacher, at.Child("attacher")), attachment(va, at)...)
	return append(errs, validation.Frozen(va.Spec, old.Spec, field.NewPath("spec"))...)
}
