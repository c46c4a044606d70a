package validation

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/operation"
	"k8s.io/apimachinery/pkg/api/validate"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

const oneVolumeType = "may not specify more than 1 volume type"

// volumes checks the volumes of a pod and returns the sources of the valid ones
// by name. meta is nil for templates.
func (c *podSpecCheck) volumes(path *field.Path) {
	created := names{} // claims that ephemeral volumes will create
	if c.meta != nil && c.meta.Name != "" {
		for i := range c.spec.Volumes {
			if v := &c.spec.Volumes[i]; v.Ephemeral != nil {
				created[c.meta.Name+"-"+v.Name] = true
			}
		}
	}
	for i := range c.spec.Volumes {
		v, at := &c.spec.Volumes[i], path.Index(i)
		var e errorList
		e.add(c.volumeSource(v, at)...)
		if v.Name == "" {
			e.required(at.Child("name"), "")
		} else {
			e.add(DNSLabel(v.Name, at.Child("name"))...)
		}
		if _, taken := c.sources[v.Name]; taken {
			e.duplicate(at.Child("name"), v.Name)
		}
		if len(e.list) == 0 {
			c.sources[v.Name] = &v.VolumeSource
		}
		if claim := v.PersistentVolumeClaim; claim != nil && created[claim.ClaimName] {
			e.invalid(at.Child("persistentVolumeClaim", "claimName"), claim.ClaimName, "must not reference a PVC that gets created for an ephemeral volume")
		}
		c.add(e.list...)
	}
}

// A volumeKind is one member of the VolumeSource union.
type volumeKind struct {
	present bool
	field   string // the path of "more than 1" errors
	check   func(e *errorList, at *field.Path)
	checkAt string // the path of the check, when upstream's differs
}

func (c *podSpecCheck) volumeSource(v *corev1.Volume, path *field.Path) field.ErrorList {
	var e errorList
	found := false
	for _, k := range c.volumeKinds(v, path) {
		if !k.present {
			continue
		}
		if found && k.field != "emptyDir" {
			e.forbidden(path.Child(k.field), oneVolumeType)
			continue
		}
		found = true
		at := path.Child(k.field)
		if k.checkAt != "" {
			at = path.Child(k.checkAt)
		}
		k.check(&e, at)
	}
	if !found {
		e.required(path, "must specify a volume type")
	}
	return e.list
}

// volumeKinds lists the union's members in upstream's order.
func (c *podSpecCheck) volumeKinds(v *corev1.Volume, path *field.Path) []volumeKind {
	s := &v.VolumeSource
	return []volumeKind{
		{s.EmptyDir != nil, "emptyDir", func(e *errorList, at *field.Path) {
			if size := s.EmptyDir.SizeLimit; size != nil && size.Sign() < 0 {
				e.forbidden(at.Child("sizeLimit"), "SizeLimit field must be a valid resource quantity")
			}
		}, ""},
		{s.HostPath != nil, "hostPath", func(e *errorList, at *field.Path) { hostPath(e, s.HostPath, at) }, ""},
		{s.GitRepo != nil, "gitRepo", func(e *errorList, at *field.Path) {
			needed(e, at, "repository", s.GitRepo.Repository)
			e.add(relativePath(s.GitRepo.Directory, at.Child("directory"))...)
		}, ""},
		{s.GCEPersistentDisk != nil, "gcePersistentDisk", func(e *errorList, at *field.Path) { gceDisk(e, s.GCEPersistentDisk, at) }, "persistentDisk"},
		{s.AWSElasticBlockStore != nil, "awsElasticBlockStore", func(e *errorList, at *field.Path) { awsDisk(e, s.AWSElasticBlockStore, at) }, ""},
		{s.Secret != nil, "secret", func(e *errorList, at *field.Path) {
			needed(e, at, "secretName", s.Secret.SecretName)
			fileMode(e, s.Secret.DefaultMode, at.Child("defaultMode"))
			fileOwner(e, s.Secret.DefaultUser, at.Child("defaultUser"))
			keysToPaths(e, s.Secret.Items, at.Child("items"), nil)
		}, ""},
		{s.NFS != nil, "nfs", func(e *errorList, at *field.Path) { nfs(e, s.NFS, at) }, ""},
		{s.ISCSI != nil, "iscsi", func(e *errorList, at *field.Path) {
			iscsi(e, iscsiFields{s.ISCSI.TargetPortal, s.ISCSI.IQN, s.ISCSI.Lun, s.ISCSI.DiscoveryCHAPAuth || s.ISCSI.SessionCHAPAuth, s.ISCSI.SecretRef != nil, s.ISCSI.InitiatorName}, at, "must be valid format starting with iqn, eui, or naa")
			if s.ISCSI.InitiatorName != nil && len(v.Name+":"+s.ISCSI.TargetPortal) > 64 {
				e.invalid(path.Child("name"), v.Name, iscsiTooLong)
			}
		}, ""},
		{s.Glusterfs != nil, "glusterfs", func(e *errorList, at *field.Path) {
			needed(e, at, "endpoints", s.Glusterfs.EndpointsName)
			needed(e, at, "path", s.Glusterfs.Path)
		}, ""},
		{s.Flocker != nil, "flocker", func(e *errorList, at *field.Path) { flocker(e, s.Flocker, at) }, ""},
		{s.PersistentVolumeClaim != nil, "persistentVolumeClaim", func(e *errorList, at *field.Path) {
			needed(e, at, "claimName", s.PersistentVolumeClaim.ClaimName)
		}, ""},
		{s.RBD != nil, "rbd", func(e *errorList, at *field.Path) { rbd(e, s.RBD.CephMonitors, s.RBD.RBDImage, at) }, ""},
		{s.Cinder != nil, "cinder", func(e *errorList, at *field.Path) {
			needed(e, at, "volumeID", s.Cinder.VolumeID)
			localSecret(e, s.Cinder.SecretRef, at)
		}, ""},
		{s.CephFS != nil, "cephFS", func(e *errorList, at *field.Path) {
			if len(s.CephFS.Monitors) == 0 {
				e.required(at.Child("monitors"), "")
			}
		}, "cephfs"},
		{s.Quobyte != nil, "quobyte", func(e *errorList, at *field.Path) { quobyte(e, s.Quobyte, at) }, ""},
		{s.DownwardAPI != nil, "downwarAPI", func(e *errorList, at *field.Path) {
			fileMode(e, s.DownwardAPI.DefaultMode, at.Child("defaultMode"))
			fileOwner(e, s.DownwardAPI.DefaultUser, at.Child("defaultUser"))
			for i := range s.DownwardAPI.Items {
				downwardFile(e, &s.DownwardAPI.Items[i], at)
			}
		}, "downwardAPI"},
		{s.FC != nil, "fc", func(e *errorList, at *field.Path) { fibreChannel(e, s.FC, at) }, ""},
		{s.FlexVolume != nil, "flexVolume", func(e *errorList, at *field.Path) { flex(e, s.FlexVolume.Driver, s.FlexVolume.Options, at) }, ""},
		{s.ConfigMap != nil, "configMap", func(e *errorList, at *field.Path) {
			needed(e, at, "name", s.ConfigMap.Name)
			fileMode(e, s.ConfigMap.DefaultMode, at.Child("defaultMode"))
			fileOwner(e, s.ConfigMap.DefaultUser, at.Child("defaultUser"))
			keysToPaths(e, s.ConfigMap.Items, at.Child("items"), nil)
		}, ""},
		{s.AzureFile != nil, "azureFile", func(e *errorList, at *field.Path) {
			needed(e, at, "secretName", s.AzureFile.SecretName)
			needed(e, at, "shareName", s.AzureFile.ShareName)
		}, ""},
		{s.VsphereVolume != nil, "vsphereVolume", func(e *errorList, at *field.Path) { needed(e, at, "volumePath", s.VsphereVolume.VolumePath) }, ""},
		{s.PhotonPersistentDisk != nil, "photonPersistentDisk", func(e *errorList, at *field.Path) { needed(e, at, "pdID", s.PhotonPersistentDisk.PdID) }, ""},
		{s.PortworxVolume != nil, "portworxVolume", func(e *errorList, at *field.Path) { needed(e, at, "volumeID", s.PortworxVolume.VolumeID) }, ""},
		{s.AzureDisk != nil, "azureDisk", func(e *errorList, at *field.Path) { azureDisk(e, s.AzureDisk, at) }, ""},
		{s.StorageOS != nil, "storageos", func(e *errorList, at *field.Path) {
			storageOS(e, s.StorageOS.VolumeName, s.StorageOS.VolumeNamespace, at)
			localSecret(e, s.StorageOS.SecretRef, at)
		}, ""},
		{s.Projected != nil, "projected", func(e *errorList, at *field.Path) { projected(e, s.Projected, at) }, ""},
		{s.ScaleIO != nil, "scaleIO", func(e *errorList, at *field.Path) {
			scaleIO(e, s.ScaleIO.Gateway, s.ScaleIO.System, s.ScaleIO.VolumeName, at)
		}, ""},
		{s.CSI != nil, "csi", func(e *errorList, at *field.Path) {
			e.add(CSIDriverName(s.CSI.Driver, at.Child("driver"))...)
			if ref := s.CSI.NodePublishSecretRef; ref != nil {
				if ref.Name == "" {
					e.required(at.Child("nodePublishSecretRef", "name"), "")
				} else {
					e.invalidAll(at.Child("name"), ref.Name, apivalidation.NameIsDNSSubdomain(ref.Name, false))
				}
			}
		}, ""},
		{s.Ephemeral != nil, "ephemeral", func(e *errorList, at *field.Path) {
			if t := s.Ephemeral.VolumeClaimTemplate; t == nil {
				e.required(at.Child("volumeClaimTemplate"), "")
			} else {
				claimTemplate(e, t, at.Child("volumeClaimTemplate"))
			}
			if c.meta != nil && c.meta.Name != "" && v.Name != "" {
				claim := c.meta.Name + "-" + v.Name
				for _, m := range apivalidation.NameIsDNSSubdomain(claim, false) {
					e.invalid(path.Child("name"), v.Name, fmt.Sprintf("PVC name %q: %v", claim, m))
				}
			}
		}, ""},
		{s.Image != nil, "image", func(e *errorList, at *field.Path) {
			needed(e, at, "reference", s.Image.Reference)
			oneOf(e, at.Child("pullPolicy"), s.Image.PullPolicy, corev1.PullAlways, corev1.PullIfNotPresent, corev1.PullNever)
		}, ""},
	}
}

// needed adds an error when a string field is empty.
func needed(e *errorList, at *field.Path, name, value string) {
	if value == "" {
		e.required(at.Child(name), "")
	}
}

func localSecret(e *errorList, ref *corev1.LocalObjectReference, at *field.Path) {
	if ref != nil && ref.Name == "" {
		e.required(at.Child("secretRef", "name"), "")
	}
}

func hostPath(e *errorList, h *corev1.HostPathVolumeSource, at *field.Path) {
	if h.Path == "" {
		e.required(at.Child("path"), "")
		return
	}
	e.add(noBacksteps(h.Path, at.Child("path"))...)
	if h.Type != nil {
		oneOfOrEmpty(e, at.Child("type"), *h.Type, corev1.HostPathUnset, corev1.HostPathBlockDev, corev1.HostPathCharDev,
			corev1.HostPathDirectory, corev1.HostPathDirectoryOrCreate, corev1.HostPathFile, corev1.HostPathFileOrCreate, corev1.HostPathSocket)
	}
}

// fileOwner checks who owns a file.
func fileOwner(e *errorList, user *int64, at *field.Path) {
	if user != nil {
		e.invalidAll(at, *user, utilvalidation.IsValidUserID(*user))
	}
}

// keysToPaths checks the items of a Secret or ConfigMap volume; onPath is called
// with each path.
func keysToPaths(e *errorList, items []corev1.KeyToPath, at *field.Path, onPath func(string)) {
	for i, item := range items {
		p := at.Index(i)
		needed(e, p, "key", item.Key)
		needed(e, p, "path", item.Path)
		e.add(volumePath(item.Path, p.Child("path"))...)
		fileMode(e, item.Mode, p.Child("mode"))
		fileOwner(e, item.User, p.Child("user"))
		if onPath != nil && item.Path != "" {
			onPath(item.Path)
		}
	}
}

// claimTemplate checks the claim of an ephemeral volume.
func claimTemplate(e *errorList, t *corev1.PersistentVolumeClaimTemplate, at *field.Path) {
	e.add(TemplateMeta(&t.ObjectMeta, at.Child("metadata"))...)
	e.add(ClaimSpec(&t.Spec, nil, at.Child("spec"))...)
}

// TemplateMeta checks the metadata of a template of claims: it has labels and annotations.
func TemplateMeta(m *metav1.ObjectMeta, at *field.Path) field.ErrorList {
	var e errorList
	e.add(apivalidation.ValidateAnnotations(m.Annotations, at.Child("annotations"))...)
	e.add(metav1validation.ValidateLabels(m.Labels, at.Child("labels"))...)
	rest := *m
	rest.Annotations, rest.Labels = nil, nil
	for _, f := range setMetaFields(&rest) {
		e.forbidden(at.Child(f), "cannot be set")
	}
	return e.list
}

func setMetaFields(m *metav1.ObjectMeta) (set []string) {
	for _, f := range []struct {
		name  string
		given bool
	}{
		{"name", m.Name != ""}, {"generateName", m.GenerateName != ""}, {"namespace", m.Namespace != ""},
		{"selfLink", m.SelfLink != ""}, {"uID", m.UID != ""}, {"resourceVersion", m.ResourceVersion != ""},
		{"generation", m.Generation != 0}, {"creationTimestamp", !m.CreationTimestamp.IsZero()},
		{"deletionTimestamp", m.DeletionTimestamp != nil}, {"deletionGracePeriodSeconds", m.DeletionGracePeriodSeconds != nil},
		{"ownerReferences", m.OwnerReferences != nil}, {"finalizers", m.Finalizers != nil}, {"managedFields", m.ManagedFields != nil},
	} {
		if f.given {
			set = append(set, f.name)
		}
	}
	return set
}

// DriverName is CSIDriverName as upstream's generated rules say it: of newer kinds.
func DriverName(name string, at *field.Path) field.ErrorList {
	if name == "" {
		return field.ErrorList{field.Required(at, "")}
	}
	errs := validate.LongNameCaseless(context.Background(), operation.Operation{}, at, &name, nil) //nolint:staticcheck // these names are so
	return append(errs, validate.MaxLength(context.Background(), operation.Operation{}, at, &name, nil, 63)...)
}

// ShortName checks a DNS label as upstream's generated rules do.
func ShortName(name string, at *field.Path) field.ErrorList {
	return validate.ShortName(context.Background(), operation.Operation{}, at, &name, nil)
}

// CSIDriverName checks the name of a CSI driver.
func CSIDriverName(name string, at *field.Path) field.ErrorList {
	var e errorList
	if name == "" {
		e.required(at, "")
		return e.list
	}
	if len(name) > 63 {
		e.add(field.TooLong(at, "", 63))
	}
	e.invalidAll(at, name, apivalidation.NameIsDNSSubdomain(strings.ToLower(name), false))
	return e.list
}
