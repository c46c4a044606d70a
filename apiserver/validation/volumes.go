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

// A volumeType is one member of the VolumeSource union.
type volumeType struct {
	present func(s *corev1.VolumeSource) bool
	field   string // the path of "more than 1" errors
	check   func(c *podSpecCheck, e *errorList, v *corev1.Volume, path, at *field.Path)
	checkAt string // the path of the check, when upstream's differs
}

func (c *podSpecCheck) volumeSource(v *corev1.Volume, path *field.Path) field.ErrorList {
	var e errorList
	found := false
	for i := range volumeTypes {
		k := &volumeTypes[i]
		if !k.present(&v.VolumeSource) {
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
		k.check(c, &e, v, path, at)
	}
	if !found {
		e.required(path, "must specify a volume type")
	}
	return e.list
}

// volumeTypes lists the union's members in upstream's order. Nothing in it depends on a
// volume, so that checking one makes no closures.
var volumeTypes = []volumeType{
	{func(s *corev1.VolumeSource) bool { return s.EmptyDir != nil }, "emptyDir", func(c *podSpecCheck, e *errorList, v *corev1.Volume, path, at *field.Path) {
		if size := v.EmptyDir.SizeLimit; size != nil && size.Sign() < 0 {
			e.forbidden(at.Child("sizeLimit"), "SizeLimit field must be a valid resource quantity")
		}
	}, ""},
	{func(s *corev1.VolumeSource) bool { return s.HostPath != nil }, "hostPath", func(c *podSpecCheck, e *errorList, v *corev1.Volume, path, at *field.Path) {
		hostPath(e, v.HostPath, at)
	}, ""},
	{func(s *corev1.VolumeSource) bool { return s.GitRepo != nil }, "gitRepo", func(c *podSpecCheck, e *errorList, v *corev1.Volume, path, at *field.Path) {
		needed(e, at, "repository", v.GitRepo.Repository)
		e.add(relativePath(v.GitRepo.Directory, at.Child("directory"))...)
	}, ""},
	{func(s *corev1.VolumeSource) bool { return s.GCEPersistentDisk != nil }, "gcePersistentDisk", func(c *podSpecCheck, e *errorList, v *corev1.Volume, path, at *field.Path) {
		gceDisk(e, v.GCEPersistentDisk, at)
	}, "persistentDisk"},
	{func(s *corev1.VolumeSource) bool { return s.AWSElasticBlockStore != nil }, "awsElasticBlockStore", func(c *podSpecCheck, e *errorList, v *corev1.Volume, path, at *field.Path) {
		awsDisk(e, v.AWSElasticBlockStore, at)
	}, ""},
	{func(s *corev1.VolumeSource) bool { return s.Secret != nil }, "secret", func(c *podSpecCheck, e *errorList, v *corev1.Volume, path, at *field.Path) {
		needed(e, at, "secretName", v.Secret.SecretName)
		fileMode(e, v.Secret.DefaultMode, at, "defaultMode")
		fileOwner(e, v.Secret.DefaultUser, at, "defaultUser")
		keysToPaths(e, v.Secret.Items, at.Child("items"), nil)
	}, ""},
	{func(s *corev1.VolumeSource) bool { return s.NFS != nil }, "nfs", func(c *podSpecCheck, e *errorList, v *corev1.Volume, path, at *field.Path) { nfs(e, v.NFS, at) }, ""},
	{func(s *corev1.VolumeSource) bool { return s.ISCSI != nil }, "iscsi", func(c *podSpecCheck, e *errorList, v *corev1.Volume, path, at *field.Path) {
		iscsi(e, iscsiFields{v.ISCSI.TargetPortal, v.ISCSI.IQN, v.ISCSI.Lun, v.ISCSI.DiscoveryCHAPAuth || v.ISCSI.SessionCHAPAuth, v.ISCSI.SecretRef != nil, v.ISCSI.InitiatorName}, at, "must be valid format starting with iqn, eui, or naa")
		if v.ISCSI.InitiatorName != nil && len(v.Name+":"+v.ISCSI.TargetPortal) > 64 {
			e.invalid(path.Child("name"), v.Name, iscsiTooLong)
		}
	}, ""},
	{func(s *corev1.VolumeSource) bool { return s.Glusterfs != nil }, "glusterfs", func(c *podSpecCheck, e *errorList, v *corev1.Volume, path, at *field.Path) {
		needed(e, at, "endpoints", v.Glusterfs.EndpointsName)
		needed(e, at, "path", v.Glusterfs.Path)
	}, ""},
	{func(s *corev1.VolumeSource) bool { return s.Flocker != nil }, "flocker", func(c *podSpecCheck, e *errorList, v *corev1.Volume, path, at *field.Path) { flocker(e, v.Flocker, at) }, ""},
	{func(s *corev1.VolumeSource) bool { return s.PersistentVolumeClaim != nil }, "persistentVolumeClaim", func(c *podSpecCheck, e *errorList, v *corev1.Volume, path, at *field.Path) {
		needed(e, at, "claimName", v.PersistentVolumeClaim.ClaimName)
	}, ""},
	{func(s *corev1.VolumeSource) bool { return s.RBD != nil }, "rbd", func(c *podSpecCheck, e *errorList, v *corev1.Volume, path, at *field.Path) {
		rbd(e, v.RBD.CephMonitors, v.RBD.RBDImage, at)
	}, ""},
	{func(s *corev1.VolumeSource) bool { return s.Cinder != nil }, "cinder", func(c *podSpecCheck, e *errorList, v *corev1.Volume, path, at *field.Path) {
		needed(e, at, "volumeID", v.Cinder.VolumeID)
		localSecret(e, v.Cinder.SecretRef, at)
	}, ""},
	{func(s *corev1.VolumeSource) bool { return s.CephFS != nil }, "cephFS", func(c *podSpecCheck, e *errorList, v *corev1.Volume, path, at *field.Path) {
		if len(v.CephFS.Monitors) == 0 {
			e.required(at.Child("monitors"), "")
		}
	}, "cephfs"},
	{func(s *corev1.VolumeSource) bool { return s.Quobyte != nil }, "quobyte", func(c *podSpecCheck, e *errorList, v *corev1.Volume, path, at *field.Path) { quobyte(e, v.Quobyte, at) }, ""},
	{func(s *corev1.VolumeSource) bool { return s.DownwardAPI != nil }, "downwarAPI", func(c *podSpecCheck, e *errorList, v *corev1.Volume, path, at *field.Path) {
		fileMode(e, v.DownwardAPI.DefaultMode, at, "defaultMode")
		fileOwner(e, v.DownwardAPI.DefaultUser, at, "defaultUser")
		for i := range v.DownwardAPI.Items {
			downwardFile(e, &v.DownwardAPI.Items[i], at)
		}
	}, "downwardAPI"},
	{func(s *corev1.VolumeSource) bool { return s.FC != nil }, "fc", func(c *podSpecCheck, e *errorList, v *corev1.Volume, path, at *field.Path) { fibreChannel(e, v.FC, at) }, ""},
	{func(s *corev1.VolumeSource) bool { return s.FlexVolume != nil }, "flexVolume", func(c *podSpecCheck, e *errorList, v *corev1.Volume, path, at *field.Path) {
		flex(e, v.FlexVolume.Driver, v.FlexVolume.Options, at)
	}, ""},
	{func(s *corev1.VolumeSource) bool { return s.ConfigMap != nil }, "configMap", func(c *podSpecCheck, e *errorList, v *corev1.Volume, path, at *field.Path) {
		needed(e, at, "name", v.ConfigMap.Name)
		fileMode(e, v.ConfigMap.DefaultMode, at, "defaultMode")
		fileOwner(e, v.ConfigMap.DefaultUser, at, "defaultUser")
		keysToPaths(e, v.ConfigMap.Items, at.Child("items"), nil)
	}, ""},
	{func(s *corev1.VolumeSource) bool { return s.AzureFile != nil }, "azureFile", func(c *podSpecCheck, e *errorList, v *corev1.Volume, path, at *field.Path) {
		needed(e, at, "secretName", v.AzureFile.SecretName)
		needed(e, at, "shareName", v.AzureFile.ShareName)
	}, ""},
	{func(s *corev1.VolumeSource) bool { return s.VsphereVolume != nil }, "vsphereVolume", func(c *podSpecCheck, e *errorList, v *corev1.Volume, path, at *field.Path) {
		needed(e, at, "volumePath", v.VsphereVolume.VolumePath)
	}, ""},
	{func(s *corev1.VolumeSource) bool { return s.PhotonPersistentDisk != nil }, "photonPersistentDisk", func(c *podSpecCheck, e *errorList, v *corev1.Volume, path, at *field.Path) {
		needed(e, at, "pdID", v.PhotonPersistentDisk.PdID)
	}, ""},
	{func(s *corev1.VolumeSource) bool { return s.PortworxVolume != nil }, "portworxVolume", func(c *podSpecCheck, e *errorList, v *corev1.Volume, path, at *field.Path) {
		needed(e, at, "volumeID", v.PortworxVolume.VolumeID)
	}, ""},
	{func(s *corev1.VolumeSource) bool { return s.AzureDisk != nil }, "azureDisk", func(c *podSpecCheck, e *errorList, v *corev1.Volume, path, at *field.Path) {
		azureDisk(e, v.AzureDisk, at)
	}, ""},
	{func(s *corev1.VolumeSource) bool { return s.StorageOS != nil }, "storageos", func(c *podSpecCheck, e *errorList, v *corev1.Volume, path, at *field.Path) {
		storageOS(e, v.StorageOS.VolumeName, v.StorageOS.VolumeNamespace, at)
		localSecret(e, v.StorageOS.SecretRef, at)
	}, ""},
	{func(s *corev1.VolumeSource) bool { return s.Projected != nil }, "projected", func(c *podSpecCheck, e *errorList, v *corev1.Volume, path, at *field.Path) {
		projected(e, v.Projected, at)
	}, ""},
	{func(s *corev1.VolumeSource) bool { return s.ScaleIO != nil }, "scaleIO", func(c *podSpecCheck, e *errorList, v *corev1.Volume, path, at *field.Path) {
		scaleIO(e, v.ScaleIO.Gateway, v.ScaleIO.System, v.ScaleIO.VolumeName, at)
	}, ""},
	{func(s *corev1.VolumeSource) bool { return s.CSI != nil }, "csi", func(c *podSpecCheck, e *errorList, v *corev1.Volume, path, at *field.Path) {
		e.add(CSIDriverName(v.CSI.Driver, at.Child("driver"))...)
		if ref := v.CSI.NodePublishSecretRef; ref != nil {
			if ref.Name == "" {
				e.required(at.Child("nodePublishSecretRef", "name"), "")
			} else {
				invalidChild(e, at, "name", ref.Name, apivalidation.NameIsDNSSubdomain(ref.Name, false))
			}
		}
	}, ""},
	{func(s *corev1.VolumeSource) bool { return s.Ephemeral != nil }, "ephemeral", func(c *podSpecCheck, e *errorList, v *corev1.Volume, path, at *field.Path) {
		if t := v.Ephemeral.VolumeClaimTemplate; t == nil {
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
	{func(s *corev1.VolumeSource) bool { return s.Image != nil }, "image", func(c *podSpecCheck, e *errorList, v *corev1.Volume, path, at *field.Path) {
		needed(e, at, "reference", v.Image.Reference)
		oneOfChild(e, at, "pullPolicy", v.Image.PullPolicy, corev1.PullAlways, corev1.PullIfNotPresent, corev1.PullNever)
	}, ""},
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
func fileOwner(e *errorList, user *int64, at *field.Path, name string) {
	if user != nil {
		invalidChild(e, at, name, *user, utilvalidation.IsValidUserID(*user))
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
		fileMode(e, item.Mode, p, "mode")
		fileOwner(e, item.User, p, "user")
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
