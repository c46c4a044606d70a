package validation

import (
	"net"
	"path"
	"regexp"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

const iscsiTooLong = "Total length of <volume name>:<iscsi.targetPortal> must be under 64 characters if iscsi.initiatorName is specified."

var iscsiNames = map[string]*regexp.Regexp{
	"iqn": regexp.MustCompile(`iqn\.\d{4}-\d{2}\.([[:alnum:]-.]+)(:[^,;*&$|\s]+)$`),
	"eui": regexp.MustCompile(`^eui.[[:alnum:]]{16}$`),
	"naa": regexp.MustCompile(`^naa.[[:alnum:]]{32}$`),
}

// iscsiFields are what pod volumes and persistent volumes have in common.
type iscsiFields struct {
	portal, iqn string
	lun         int32
	chap        bool
	secret      bool
	initiator   *string
}

func iscsi(e *errorList, v iscsiFields, at *field.Path, prefixError string) {
	needed(e, at, "targetPortal", v.portal)
	if v.iqn == "" {
		e.required(at.Child("iqn"), "")
	} else {
		iscsiName(e, v.iqn, at.Child("iqn"), prefixError)
	}
	if v.lun < 0 || v.lun > 255 {
		e.invalid(at.Child("lun"), v.lun, validation.InclusiveRangeError(0, 255))
	}
	if v.chap && !v.secret {
		e.required(at.Child("secretRef"), "")
	}
	if v.initiator != nil {
		iscsiName(e, *v.initiator, at.Child("initiatorname"), prefixError)
	}
}

func iscsiName(e *errorList, name string, at *field.Path, prefixError string) {
	for prefix, format := range iscsiNames {
		if strings.HasPrefix(name, prefix) {
			if !format.MatchString(name) {
				e.invalid(at, name, "must be valid format")
			}
			return
		}
	}
	e.invalid(at, name, prefixError)
}

func partition(e *errorList, value int32, at *field.Path) {
	if value < 0 || value > 255 {
		e.invalid(at.Child("partition"), value, validation.InclusiveRangeError(1, 255))
	}
}

func gceDisk(e *errorList, d *corev1.GCEPersistentDiskVolumeSource, at *field.Path) {
	needed(e, at, "pdName", d.PDName)
	partition(e, d.Partition, at)
}

func awsDisk(e *errorList, d *corev1.AWSElasticBlockStoreVolumeSource, at *field.Path) {
	needed(e, at, "volumeID", d.VolumeID)
	partition(e, d.Partition, at)
}

func nfs(e *errorList, v *corev1.NFSVolumeSource, at *field.Path) {
	needed(e, at, "server", v.Server)
	needed(e, at, "path", v.Path)
	if !path.IsAbs(v.Path) {
		e.invalid(at.Child("path"), v.Path, "must be an absolute path")
	}
}

func flocker(e *errorList, v *corev1.FlockerVolumeSource, at *field.Path) {
	switch named, identified := v.DatasetName != "", v.DatasetUUID != ""; {
	case !named && !identified:
		e.required(at, "one of datasetName and datasetUUID is required")
	case named && identified:
		e.invalid(at, "resource", "datasetName and datasetUUID can not be specified simultaneously")
	}
	if strings.Contains(v.DatasetName, "/") {
		e.invalid(at.Child("datasetName"), v.DatasetName, "must not contain '/'")
	}
}

func rbd(e *errorList, monitors []string, image string, at *field.Path) {
	if len(monitors) == 0 {
		e.required(at.Child("monitors"), "")
	}
	needed(e, at, "image", image)
}

func quobyte(e *errorList, v *corev1.QuobyteVolumeSource, at *field.Path) {
	const registryError = "must be a host:port pair or multiple pairs separated by commas"
	switch {
	case v.Registry == "":
		e.required(at.Child("registry"), registryError)
	case len(v.Tenant) >= 65:
		e.required(at.Child("tenant"), "must be a UUID and may not exceed a length of 64 characters")
	default:
		for pair := range strings.SplitSeq(v.Registry, ",") {
			if _, _, err := net.SplitHostPort(pair); err != nil {
				e.invalid(at.Child("registry"), v.Registry, registryError)
			}
		}
	}
	needed(e, at, "volume", v.Volume)
}

func fibreChannel(e *errorList, v *corev1.FCVolumeSource, at *field.Path) {
	switch {
	case len(v.TargetWWNs) == 0 && len(v.WWIDs) == 0:
		e.required(at.Child("targetWWNs"), "must specify either targetWWNs or wwids, but not both")
	case len(v.TargetWWNs) != 0 && len(v.WWIDs) != 0:
		e.invalid(at.Child("targetWWNs"), v.TargetWWNs, "targetWWNs and wwids can not be specified simultaneously")
	}
	if len(v.TargetWWNs) == 0 {
		return
	}
	if v.Lun == nil {
		e.required(at.Child("lun"), "lun is required if targetWWNs is specified")
	} else if *v.Lun < 0 || *v.Lun > 255 {
		e.invalid(at.Child("lun"), v.Lun, validation.InclusiveRangeError(0, 255))
	}
}

func flex(e *errorList, driver string, options map[string]string, at *field.Path) {
	needed(e, at, "driver", driver)
	for key := range options {
		domain, _, _ := strings.Cut(key, "/")
		domain = "." + strings.ToLower(domain)
		if strings.HasSuffix(domain, ".kubernetes.io") || strings.HasSuffix(domain, ".k8s.io") {
			e.invalid(at.Child("options").Key(key), key, "kubernetes.io and k8s.io namespaces are reserved")
		}
	}
}

func azureDisk(e *errorList, d *corev1.AzureDiskVolumeSource, at *field.Path) {
	needed(e, at, "diskName", d.DiskName)
	needed(e, at, "diskURI", d.DataDiskURI)
	if d.CachingMode != nil {
		oneOfOrEmpty(e, at.Child("cachingMode"), *d.CachingMode,
			corev1.AzureDataDiskCachingNone, corev1.AzureDataDiskCachingReadOnly, corev1.AzureDataDiskCachingReadWrite)
	}
	if d.Kind == nil {
		return
	}
	oneOfOrEmpty(e, at.Child("kind"), *d.Kind, corev1.AzureDedicatedBlobDisk, corev1.AzureManagedDisk, corev1.AzureSharedBlobDisk)
	switch managed := *d.Kind == corev1.AzureManagedDisk; {
	case managed && !strings.HasPrefix(d.DataDiskURI, "/subscriptions/"):
		e.add(field.NotSupported(at.Child("diskURI"), d.DataDiskURI,
			[]string{"/subscriptions/{sub-id}/resourcegroups/{group-name}/providers/microsoft.compute/disks/{disk-id}"}))
	case !managed && !strings.HasPrefix(d.DataDiskURI, "https://"):
		e.add(field.NotSupported(at.Child("diskURI"), d.DataDiskURI,
			[]string{"https://{account-name}.blob.core.windows.net/{container-name}/{disk-name}.vhd"}))
	}
}

func storageOS(e *errorList, name, namespace string, at *field.Path) {
	if name == "" {
		e.required(at.Child("volumeName"), "")
	} else {
		e.add(DNSLabel(name, at.Child("volumeName"))...)
	}
	if namespace != "" {
		e.add(DNSLabel(namespace, at.Child("volumeNamespace"))...)
	}
}

func scaleIO(e *errorList, gateway, system, volume string, at *field.Path) {
	needed(e, at, "gateway", gateway)
	needed(e, at, "system", system)
	needed(e, at, "volumeName", volume)
}
