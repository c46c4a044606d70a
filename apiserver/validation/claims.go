package validation

import (
	"path"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// ClaimSpec checks the spec of a PersistentVolumeClaim or of a template of one.
// old, if not nil, is the spec before: what it had under older rules may stay.
func ClaimSpec(spec, old *corev1.PersistentVolumeClaimSpec, at *field.Path) field.ErrorList {
	var e errorList
	var before *metav1.LabelSelector
	anyGroup := false
	if old != nil {
		before = old.Selector
		anyGroup = old.DataSource != nil && old.DataSource.APIGroup != nil || old.DataSourceRef != nil && old.DataSourceRef.APIGroup != nil
	}
	accessModes(&e, spec.AccessModes, at.Child("accessModes"), "at least 1 access mode is required")
	if spec.Selector != nil {
		e.add(LabelSelector(spec.Selector, before, at.Child("selector"))...)
	}
	storage := at.Child("resources").Key(string(corev1.ResourceStorage))
	if size, ok := spec.Resources.Requests[corev1.ResourceStorage]; !ok {
		e.required(storage, "")
	} else {
		e.add(PositiveQuantity(size, storage)...)
	}
	className(&e, spec.StorageClassName, at.Child("storageClassName"))
	if spec.VolumeMode != nil {
		oneOfOrEmpty(&e, at.Child("volumeMode"), *spec.VolumeMode, corev1.PersistentVolumeBlock, corev1.PersistentVolumeFilesystem)
	}
	source, ref := spec.DataSource, spec.DataSourceRef
	if source != nil {
		dataSource(&e, source.APIGroup, source.Kind, source.Name, anyGroup, at.Child("dataSource"))
	}
	if ref != nil {
		dataSource(&e, ref.APIGroup, ref.Kind, ref.Name, anyGroup, at.Child("dataSourceRef"))
		if ref.Namespace != nil && *ref.Namespace != "" {
			e.invalidAll(at.Child("dataSourceRef", "namespace"), *ref.Namespace, apivalidation.ValidateNamespaceName(*ref.Namespace, false))
		}
	}
	switch {
	case source == nil || ref == nil:
	case ref.Namespace != nil && *ref.Namespace != "":
		e.invalid(at, at.Child("dataSource"), "may not be specified when dataSourceRef.namespace is specified")
	case source.Kind != ref.Kind || source.Name != ref.Name || !Equal(source.APIGroup, ref.APIGroup):
		e.invalid(at, at.Child("dataSource"), "must match dataSourceRef")
	}
	className(&e, spec.VolumeAttributesClassName, at.Child("volumeAttributesClassName"))
	return e.list
}

func dataSource(e *errorList, group *string, kind, name string, anyGroup bool, at *field.Path) {
	needed(e, at, "name", name)
	needed(e, at, "kind", kind)
	if group == nil || *group == "" {
		if kind != "PersistentVolumeClaim" {
			e.invalid(at, kind, "must be 'PersistentVolumeClaim' when referencing the default apiGroup")
		}
		return
	}
	if !anyGroup {
		invalidChild(e, at, "apiGroup", *group, validation.IsDNS1123Subdomain(*group))
	}
}

// accessModes checks the access modes of a claim or a volume.
func accessModes(e *errorList, modes []corev1.PersistentVolumeAccessMode, at *field.Path, noneDetail string) {
	if len(modes) == 0 {
		e.required(at, noneDetail)
	}
	var alone, others bool
	for _, m := range modes {
		before := len(e.list)
		oneOfOrEmpty(e, at, m, corev1.ReadOnlyMany, corev1.ReadWriteMany, corev1.ReadWriteOnce, corev1.ReadWriteOncePod)
		switch {
		case m == corev1.ReadWriteOncePod:
			alone = true
		case len(e.list) == before:
			others = true
		}
	}
	if alone && others {
		e.forbidden(at, "may not use ReadWriteOncePod with other access modes")
	}
}

func className(e *errorList, name *string, at *field.Path) {
	if name != nil && *name != "" {
		e.invalidAll(at, *name, apivalidation.NameIsDNSSubdomain(*name, false))
	}
}

// PositiveQuantity refuses zero and less.
func PositiveQuantity(value resource.Quantity, at *field.Path) field.ErrorList {
	if value.Sign() <= 0 {
		return field.ErrorList{field.Invalid(at, value.String(), "must be greater than zero")}
	}
	return nil
}

// PersistentVolumeSpec checks a PersistentVolume's spec.
func PersistentVolumeSpec(spec *corev1.PersistentVolumeSpec, name string, at *field.Path) field.ErrorList {
	var e errorList
	accessModes(&e, spec.AccessModes, at.Child("accessModes"), "")
	capacity := at.Child("capacity")
	if len(spec.Capacity) == 0 {
		e.required(capacity, "")
	}
	if _, ok := spec.Capacity[corev1.ResourceStorage]; !ok || len(spec.Capacity) > 1 {
		e.add(field.NotSupported(capacity, spec.Capacity, []corev1.ResourceName{corev1.ResourceStorage}))
	}
	for _, r := range sortedNames(spec.Capacity) {
		e.add(basicQuantity(spec.Capacity[r], capacity.Key(string(r)))...)
		e.add(PositiveQuantity(spec.Capacity[r], capacity.Key(string(r)))...)
	}
	if p := spec.PersistentVolumeReclaimPolicy; p != "" {
		oneOfChild(&e, at, "persistentVolumeReclaimPolicy", p, corev1.PersistentVolumeReclaimDelete, corev1.PersistentVolumeReclaimRecycle, corev1.PersistentVolumeReclaimRetain)
	}
	if na := spec.NodeAffinity; na != nil {
		if na.Required == nil {
			e.required(at.Child("nodeAffinity", "required"), "must specify required node constraints")
		} else {
			nodeSelector(&e, na.Required, at.Child("nodeAffinity", "required"))
		}
	}
	persistentSource(&e, spec, name, at)
	recycledRoot(&e, spec, at)
	if spec.StorageClassName != "" {
		className(&e, &spec.StorageClassName, at.Child("storageClassName"))
	}
	if spec.VolumeMode != nil {
		oneOfOrEmpty(&e, at.Child("volumeMode"), *spec.VolumeMode, corev1.PersistentVolumeBlock, corev1.PersistentVolumeFilesystem)
	}
	attributesClass(&e, spec, at)
	return e.list
}

// InlineVolumeSpec checks a volume that is described in a VolumeAttachment.
func InlineVolumeSpec(spec *corev1.PersistentVolumeSpec, at *field.Path) field.ErrorList {
	var e errorList
	const context = "may not be specified in the context of inline volumes"
	for _, f := range []struct {
		set  bool
		name string
	}{
		{spec.ClaimRef != nil, "claimRef"}, {len(spec.Capacity) > 0, "capacity"},
		{spec.NodeAffinity != nil, "nodeAffinity"}, {spec.StorageClassName != "", "storageClassName"},
	} {
		if f.set {
			e.forbidden(at.Child(f.name), context)
		}
	}
	if spec.CSI == nil {
		e.required(at.Child("csi"), "has to be specified in the context of inline volumes")
	}
	accessModes(&e, spec.AccessModes, at.Child("accessModes"), "")
	if p := spec.PersistentVolumeReclaimPolicy; p != "" && p != corev1.PersistentVolumeReclaimRetain {
		e.forbidden(at.Child("persistentVolumeReclaimPolicy"), "may only be Retain in the context of inline volumes")
	}
	inline := *spec
	inline.NodeAffinity = nil // does not count
	persistentSource(&e, &inline, "", at)
	recycledRoot(&e, spec, at)
	if m := spec.VolumeMode; m != nil && *m != corev1.PersistentVolumeFilesystem {
		e.forbidden(at.Child("volumeMode"), "may not specify volumeMode other than Filesystem in the context of inline volumes")
	}
	return e.list
}

func recycledRoot(e *errorList, spec *corev1.PersistentVolumeSpec, at *field.Path) {
	if spec.HostPath != nil && path.Clean(spec.HostPath.Path) == "/" && spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimRecycle {
		e.forbidden(at.Child("persistentVolumeReclaimPolicy"), "may not be 'recycle' for a hostPath mount of '/'")
	}
}

func attributesClass(e *errorList, spec *corev1.PersistentVolumeSpec, at *field.Path) {
	name := spec.VolumeAttributesClassName
	if name == nil {
		return
	}
	if p := at.Child("volumeAttributesClassName"); *name == "" {
		e.required(p, "an empty string is disallowed")
	} else {
		className(e, name, p)
	}
	if spec.CSI == nil {
		e.required(at.Child("csi"), "has to be specified when using volumeAttributesClassName")
	}
}

// basicQuantity refuses amounts below zero.
func basicQuantity(value resource.Quantity, at *field.Path) field.ErrorList {
	if value.Value() < 0 {
		return field.ErrorList{field.Invalid(at, value.Value(), "must be a valid resource quantity")}
	}
	return nil
}

// ClaimStatus checks what is said of a claim.
func ClaimStatus(claim *corev1.PersistentVolumeClaim) field.ErrorList {
	var e errorList
	at, status := field.NewPath("status"), &claim.Status
	if len(claim.Spec.AccessModes) == 0 {
		e.required(field.NewPath("Spec", "accessModes"), "")
	}
	for _, r := range sortedNames(status.Capacity) {
		e.add(basicQuantity(status.Capacity[r], at.Child("capacity").Key(string(r)))...)
	}
	states := []corev1.ClaimResourceStatus{
		corev1.PersistentVolumeClaimControllerResizeInProgress, corev1.PersistentVolumeClaimControllerResizeInfeasible,
		corev1.PersistentVolumeClaimNodeResizeInProgress, corev1.PersistentVolumeClaimNodeResizeInfeasible, corev1.PersistentVolumeClaimNodeResizePending,
	}
	for r, state := range status.AllocatedResourceStatuses {
		p := at.Child("allocatedResourceStatuses")
		e.add(claimResource(r, p)...)
		if !slices.Contains(states, state) {
			slices.Sort(states)
			e.add(field.NotSupported(p, r, states))
		}
	}
	for _, r := range sortedNames(status.AllocatedResources) {
		p, value := at.Child("allocatedResources"), status.AllocatedResources[r]
		if errs := claimResource(r, p); len(errs) > 0 {
			e.add(errs...)
			continue
		}
		e.add(basicQuantity(value, p.Key(string(r)))...)
	}
	return e.list
}

func claimResource(name corev1.ResourceName, at *field.Path) field.ErrorList {
	if errs := QualifiedName(string(name), at); len(errs) > 0 {
		return errs
	}
	if isNative(name) && name != corev1.ResourceStorage {
		return field.ErrorList{field.NotSupported(at, string(name), []corev1.ResourceName{corev1.ResourceStorage})}
	}
	return nil
}

// persistentSource checks the union of sources: exactly one, and the common ones
// in depth.
func persistentSource(e *errorList, spec *corev1.PersistentVolumeSpec, name string, at *field.Path) {
	s, whole := &spec.PersistentVolumeSource, at
	kinds := []volumeKind{
		{s.HostPath != nil, "hostPath", func(e *errorList, at *field.Path) { hostPath(e, s.HostPath, at) }, ""},
		{s.GCEPersistentDisk != nil, "gcePersistentDisk", func(e *errorList, at *field.Path) { gceDisk(e, s.GCEPersistentDisk, at) }, "persistentDisk"},
		{s.AWSElasticBlockStore != nil, "awsElasticBlockStore", func(e *errorList, at *field.Path) { awsDisk(e, s.AWSElasticBlockStore, at) }, ""},
		{s.Glusterfs != nil, "glusterfs", func(e *errorList, at *field.Path) {
			needed(e, at, "endpoints", s.Glusterfs.EndpointsName)
			needed(e, at, "path", s.Glusterfs.Path)
			if ns := s.Glusterfs.EndpointsNamespace; ns != nil && *ns == "" {
				e.invalid(at.Child("endpointsNamespace"), *ns, "if the endpointnamespace is set, it must be a valid namespace name")
			} else if ns != nil {
				e.add(ObjectName(*ns, apivalidation.ValidateNamespaceName, at.Child("endpointsNamespace"))...)
			}
		}, ""},
		{s.Flocker != nil, "flocker", func(e *errorList, at *field.Path) { flocker(e, s.Flocker, at) }, ""},
		{s.NFS != nil, "nfs", func(e *errorList, at *field.Path) { nfs(e, s.NFS, at) }, ""},
		{s.RBD != nil, "rbd", func(e *errorList, at *field.Path) { rbd(e, s.RBD.CephMonitors, s.RBD.RBDImage, at) }, ""},
		{s.Quobyte != nil, "quobyte", func(e *errorList, at *field.Path) { quobyte(e, s.Quobyte, at) }, ""},
		{s.CephFS != nil, "cephFS", func(e *errorList, at *field.Path) {
			if len(s.CephFS.Monitors) == 0 {
				e.required(at.Child("monitors"), "")
			}
		}, "cephfs"},
		{s.ISCSI != nil, "iscsi", func(e *errorList, at *field.Path) {
			iscsi(e, iscsiFields{s.ISCSI.TargetPortal, s.ISCSI.IQN, s.ISCSI.Lun, s.ISCSI.DiscoveryCHAPAuth || s.ISCSI.SessionCHAPAuth, s.ISCSI.SecretRef != nil, s.ISCSI.InitiatorName}, at, "must be valid format")
			if ref := s.ISCSI.SecretRef; ref != nil {
				needed(e, at.Child("secretRef"), "name", ref.Name)
			}
			if s.ISCSI.InitiatorName != nil && len(name+":"+s.ISCSI.TargetPortal) > 64 {
				e.invalid(at.Child("targetportal"), s.ISCSI.TargetPortal, iscsiTooLong)
			}
		}, ""},
		{s.Cinder != nil, "cinder", func(e *errorList, at *field.Path) {
			needed(e, at, "volumeID", s.Cinder.VolumeID)
			if ref := s.Cinder.SecretRef; ref != nil {
				needed(e, at.Child("secretRef"), "name", ref.Name)
				needed(e, at.Child("secretRef"), "namespace", ref.Namespace)
			}
		}, ""},
		{s.FC != nil, "fc", func(e *errorList, at *field.Path) { fibreChannel(e, s.FC, at) }, ""},
		{s.FlexVolume != nil, "flexVolume", func(e *errorList, at *field.Path) { flex(e, s.FlexVolume.Driver, s.FlexVolume.Options, at) }, ""},
		{s.AzureFile != nil, "azureFile", func(e *errorList, at *field.Path) {
			needed(e, at, "secretName", s.AzureFile.SecretName)
			needed(e, at, "shareName", s.AzureFile.ShareName)
			if ns := s.AzureFile.SecretNamespace; ns != nil && *ns == "" {
				e.required(at.Child("secretNamespace"), "")
			}
		}, ""},
		{s.VsphereVolume != nil, "vsphereVolume", func(e *errorList, at *field.Path) { needed(e, at, "volumePath", s.VsphereVolume.VolumePath) }, ""},
		{s.PhotonPersistentDisk != nil, "photonPersistentDisk", func(e *errorList, at *field.Path) { needed(e, at, "pdID", s.PhotonPersistentDisk.PdID) }, ""},
		{s.PortworxVolume != nil, "portworxVolume", func(e *errorList, at *field.Path) { needed(e, at, "volumeID", s.PortworxVolume.VolumeID) }, ""},
		{s.AzureDisk != nil, "azureDisk", func(e *errorList, at *field.Path) { azureDisk(e, s.AzureDisk, at) }, ""},
		{s.ScaleIO != nil, "scaleIO", func(e *errorList, at *field.Path) {
			scaleIO(e, s.ScaleIO.Gateway, s.ScaleIO.System, s.ScaleIO.VolumeName, at)
		}, ""},
		{s.Local != nil, "local", func(e *errorList, at *field.Path) {
			if s.Local.Path == "" {
				e.required(at.Child("path"), "")
			} else {
				e.add(noBacksteps(s.Local.Path, at.Child("path"))...)
			}
			if spec.NodeAffinity == nil {
				e.required(whole.Child("nodeAffinity"), "Local volume requires node affinity")
			}
		}, ""},
		{s.StorageOS != nil, "storageos", func(e *errorList, at *field.Path) {
			storageOS(e, s.StorageOS.VolumeName, s.StorageOS.VolumeNamespace, at)
			if ref := s.StorageOS.SecretRef; ref != nil {
				needed(e, at.Child("secretRef"), "name", ref.Name)
				needed(e, at.Child("secretRef"), "namespace", ref.Namespace)
			}
		}, ""},
		{s.CSI != nil, "csi", func(e *errorList, at *field.Path) {
			e.add(CSIDriverName(s.CSI.Driver, at.Child("driver"))...)
			needed(e, at, "volumeHandle", s.CSI.VolumeHandle)
			secretReference(e, s.CSI.ControllerPublishSecretRef, at.Child("controllerPublishSecretRef"))
			secretReference(e, s.CSI.ControllerExpandSecretRef, at.Child("controllerExpandSecretRef"))
			secretReference(e, s.CSI.NodePublishSecretRef, at.Child("nodePublishSecretRef"))
			secretReference(e, s.CSI.NodeExpandSecretRef, at.Child("nodeExpandSecretRef"))
		}, ""},
	}
	found := false
	for _, k := range kinds {
		if !k.present {
			continue
		}
		if found && k.field != "flexVolume" { // flex is let through
			e.forbidden(at.Child(k.field), oneVolumeType)
			continue
		}
		found = true
		p := at.Child(k.field)
		if k.checkAt != "" {
			p = at.Child(k.checkAt)
		}
		k.check(e, p)
	}
	if !found {
		e.required(at, "must specify a volume type")
	}
}

func secretReference(e *errorList, ref *corev1.SecretReference, at *field.Path) {
	if ref == nil {
		return
	}
	if ref.Name == "" {
		e.required(at.Child("name"), "")
	} else {
		e.add(DNSSubdomain(ref.Name, at.Child("name"))...)
	}
	if ref.Namespace == "" {
		e.required(at.Child("namespace"), "")
	} else {
		e.add(DNSLabel(ref.Namespace, at.Child("namespace"))...)
	}
}

// A volumeKind is one member of the PersistentVolumeSource union, of one volume.
type volumeKind struct {
	present bool
	field   string // the path of "more than 1" errors
	check   func(e *errorList, at *field.Path)
	checkAt string // the path of the check, when upstream's differs
}
