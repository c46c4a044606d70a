package defaults

import (
	corev1 "k8s.io/api/core/v1"
	utilptr "k8s.io/utils/ptr"
)

// Volume defaults a pod's volume; one without a source is an emptyDir.
func Volume(v *corev1.Volume) {
	s := &v.VolumeSource
	if utilptr.AllPtrFieldsNil(s) {
		s.EmptyDir = &corev1.EmptyDirVolumeSource{}
	}
	if s.HostPath != nil && s.HostPath.Type == nil {
		s.HostPath.Type = ptr(corev1.HostPathUnset)
	}
	if s.Secret != nil && s.Secret.DefaultMode == nil {
		s.Secret.DefaultMode = ptr(corev1.SecretVolumeSourceDefaultMode)
	}
	if s.ConfigMap != nil && s.ConfigMap.DefaultMode == nil {
		s.ConfigMap.DefaultMode = ptr(corev1.ConfigMapVolumeSourceDefaultMode)
	}
	if d := s.DownwardAPI; d != nil {
		if d.DefaultMode == nil {
			d.DefaultMode = ptr(corev1.DownwardAPIVolumeSourceDefaultMode)
		}
		fieldRefs(d.Items)
	}
	projected(s.Projected)
	if s.Ephemeral != nil && s.Ephemeral.VolumeClaimTemplate != nil {
		ClaimSpec(&s.Ephemeral.VolumeClaimTemplate.Spec)
	}
	if s.Image != nil && s.Image.PullPolicy == "" {
		s.Image.PullPolicy = pullPolicy(s.Image.Reference)
	}
	if s.ISCSI != nil && s.ISCSI.ISCSIInterface == "" {
		s.ISCSI.ISCSIInterface = "default"
	}
	if r := s.RBD; r != nil {
		setString(&r.RBDPool, "rbd")
		setString(&r.RadosUser, "admin")
		setString(&r.Keyring, "/etc/ceph/keyring")
	}
	azureDisk(s.AzureDisk)
	if sio := s.ScaleIO; sio != nil {
		setString(&sio.StorageMode, "ThinProvisioned")
		setString(&sio.FSType, "xfs")
	}
}

func projected(p *corev1.ProjectedVolumeSource) {
	if p == nil {
		return
	}
	if p.DefaultMode == nil {
		p.DefaultMode = ptr(corev1.ProjectedVolumeSourceDefaultMode)
	}
	for i := range p.Sources {
		source := &p.Sources[i]
		if source.DownwardAPI != nil {
			fieldRefs(source.DownwardAPI.Items)
		}
		if token := source.ServiceAccountToken; token != nil && token.ExpirationSeconds == nil {
			token.ExpirationSeconds = ptr[int64](3600)
		}
	}
}

func fieldRefs(files []corev1.DownwardAPIVolumeFile) {
	for i := range files {
		fieldRef(files[i].FieldRef)
	}
}

func azureDisk(disk *corev1.AzureDiskVolumeSource) {
	if disk == nil {
		return
	}
	if disk.CachingMode == nil {
		disk.CachingMode = ptr(corev1.AzureDataDiskCachingReadWrite)
	}
	if disk.FSType == nil {
		disk.FSType = ptr("ext4")
	}
	if disk.ReadOnly == nil {
		disk.ReadOnly = ptr(false)
	}
	if disk.Kind == nil {
		disk.Kind = ptr(corev1.AzureSharedBlobDisk)
	}
}

// PersistentVolumeSource defaults the source of a PersistentVolume.
func PersistentVolumeSource(s *corev1.PersistentVolumeSource) {
	if s.HostPath != nil && s.HostPath.Type == nil {
		s.HostPath.Type = ptr(corev1.HostPathUnset)
	}
	if s.ISCSI != nil && s.ISCSI.ISCSIInterface == "" {
		s.ISCSI.ISCSIInterface = "default"
	}
	if r := s.RBD; r != nil {
		setString(&r.RBDPool, "rbd")
		setString(&r.RadosUser, "admin")
		setString(&r.Keyring, "/etc/ceph/keyring")
	}
	azureDisk(s.AzureDisk)
	if sio := s.ScaleIO; sio != nil {
		setString(&sio.StorageMode, "ThinProvisioned")
		setString(&sio.FSType, "xfs")
	}
}

// ClaimSpec defaults a PersistentVolumeClaim's spec or a template of one.
func ClaimSpec(spec *corev1.PersistentVolumeClaimSpec) {
	if spec.VolumeMode == nil {
		spec.VolumeMode = ptr(corev1.PersistentVolumeFilesystem)
	}
	Resources(spec.Resources.Limits)
	Resources(spec.Resources.Requests)
}

func setString(s *string, value string) {
	if *s == "" {
		*s = value
	}
}
