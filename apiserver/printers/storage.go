package printers

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	storagemigrationv1 "k8s.io/api/storagemigration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func volumeTables() tables {
	return tables{
		"persistentvolumes": table(columns{
			name(),
			text("Capacity", doc(corev1.PersistentVolumeSpec{}, "capacity")),
			text("Access Modes", doc(corev1.PersistentVolumeSpec{}, "accessModes")),
			text("Reclaim Policy", doc(corev1.PersistentVolumeSpec{}, "persistentVolumeReclaimPolicy")),
			text("Status", doc(corev1.PersistentVolumeStatus{}, "phase")),
			text("Claim", doc(corev1.PersistentVolumeSpec{}, "claimRef")),
			text("StorageClass", doc(corev1.PersistentVolumeSpec{}, "storageClassName")),
			text("VolumeAttributesClass", doc(corev1.PersistentVolumeSpec{}, "volumeAttributesClassName")),
			text("Reason", doc(corev1.PersistentVolumeStatus{}, "reason")),
			age(),
			wide(text("VolumeMode", doc(corev1.PersistentVolumeSpec{}, "volumeMode"))),
		}, persistentVolume),
		"persistentvolumeclaims": table(columns{
			name(),
			text("Status", doc(corev1.PersistentVolumeClaimStatus{}, "phase")),
			text("Volume", doc(corev1.PersistentVolumeClaimSpec{}, "volumeName")),
			text("Capacity", doc(corev1.PersistentVolumeClaimStatus{}, "capacity")),
			text("Access Modes", doc(corev1.PersistentVolumeClaimStatus{}, "accessModes")),
			text("StorageClass", doc(corev1.PersistentVolumeClaimSpec{}, "storageClassName")),
			text("VolumeAttributesClass", doc(corev1.PersistentVolumeClaimSpec{}, "volumeAttributesClassName")),
			age(),
			wide(text("VolumeMode", doc(corev1.PersistentVolumeClaimSpec{}, "volumeMode"))),
		}, claim),
	}
}

func persistentVolume(v *corev1.PersistentVolume) []any {
	phase := string(v.Status.Phase)
	if v.DeletionTimestamp != nil {
		phase = "Terminating"
	}
	bound := ""
	if r := v.Spec.ClaimRef; r != nil {
		bound = r.Namespace + "/" + r.Name
	}
	size := v.Spec.Capacity[corev1.ResourceStorage]
	class := v.Spec.StorageClassName
	if beta, ok := v.Annotations[corev1.BetaStorageClassAnnotation]; ok {
		class = beta
	}
	return []any{
		v.Name, size.String(), accessModes(v.Spec.AccessModes), string(v.Spec.PersistentVolumeReclaimPolicy), phase, bound,
		class, orNil(v.Spec.VolumeAttributesClassName, unset), v.Status.Reason, old(v), orNil(v.Spec.VolumeMode, unset),
	}
}

func claim(c *corev1.PersistentVolumeClaim) []any {
	phase := string(c.Status.Phase)
	if c.DeletionTimestamp != nil {
		phase = "Terminating"
	}
	capacity, modes := "", ""
	if c.Spec.VolumeName != "" {
		size := c.Status.Capacity[corev1.ResourceStorage]
		capacity, modes = size.String(), accessModes(c.Status.AccessModes)
	}
	class := orNil(c.Spec.StorageClassName, "")
	if beta, ok := c.Annotations[corev1.BetaStorageClassAnnotation]; ok {
		class = beta
	}
	return []any{
		c.Name, phase, c.Spec.VolumeName, capacity, modes, class,
		orNil(c.Spec.VolumeAttributesClassName, unset), old(c), orNil(c.Spec.VolumeMode, unset),
	}
}

// accessModes prints modes in short, always in the same order.
func accessModes(modes []corev1.PersistentVolumeAccessMode) string {
	var out []string
	for _, m := range []struct {
		mode  corev1.PersistentVolumeAccessMode
		short string
	}{
		{corev1.ReadWriteOnce, "RWO"}, {corev1.ReadOnlyMany, "ROX"}, {corev1.ReadWriteMany, "RWX"}, {corev1.ReadWriteOncePod, "RWOP"},
	} {
		if slices.Contains(modes, m.mode) {
			out = append(out, m.short)
		}
	}
	return strings.Join(out, ",")
}

func storageTables() tables {
	return tables{
		"storageclasses": table(columns{
			name(),
			text("Provisioner", doc(storagev1.StorageClass{}, "provisioner")),
			text("ReclaimPolicy", doc(storagev1.StorageClass{}, "reclaimPolicy")),
			text("VolumeBindingMode", doc(storagev1.StorageClass{}, "volumeBindingMode")),
			text("AllowVolumeExpansion", doc(storagev1.StorageClass{}, "allowVolumeExpansion")),
			age(),
		}, func(c *storagev1.StorageClass) []any {
			return []any{
				defaultName(c, "storageclass.kubernetes.io/is-default-class", "storageclass.beta.kubernetes.io/is-default-class"),
				c.Provisioner, orNil(c.ReclaimPolicy, string(corev1.PersistentVolumeReclaimDelete)),
				orNil(c.VolumeBindingMode, string(storagev1.VolumeBindingImmediate)), deref(c.AllowVolumeExpansion, false), old(c),
			}
		}),
		"volumeattributesclasses": table(columns{name(), text("DriverName", doc(storagev1.VolumeAttributesClass{}, "driverName")), age()},
			func(c *storagev1.VolumeAttributesClass) []any { return []any{c.Name, c.DriverName, old(c)} }),
		"volumeattachments": table(columns{
			name(),
			{Name: "Attacher", Type: "string", Format: "name", Description: doc(storagev1.VolumeAttachmentSpec{}, "attacher")},
			text("PV", doc(storagev1.VolumeAttachmentSource{}, "persistentVolumeName")),
			text("Node", doc(storagev1.VolumeAttachmentSpec{}, "nodeName")),
			yesNo("Attached", doc(storagev1.VolumeAttachmentStatus{}, "attached")),
			age(),
		}, func(a *storagev1.VolumeAttachment) []any {
			return []any{a.Name, a.Spec.Attacher, orNil(a.Spec.Source.PersistentVolumeName, ""), a.Spec.NodeName, a.Status.Attached, old(a)}
		}),
		"csinodes": table(columns{name(), number("Drivers", "How many CSI drivers are registered on the node."), age()},
			func(n *storagev1.CSINode) []any { return []any{n.Name, int64(len(n.Spec.Drivers)), old(n)} }),
		"csidrivers": table(columns{
			name(),
			yesNo("AttachRequired", doc(storagev1.CSIDriverSpec{}, "attachRequired")),
			yesNo("PodInfoOnMount", doc(storagev1.CSIDriverSpec{}, "podInfoOnMount")),
			yesNo("StorageCapacity", doc(storagev1.CSIDriverSpec{}, "storageCapacity")),
			text("TokenRequests", doc(storagev1.CSIDriverSpec{}, "tokenRequests")),
			yesNo("RequiresRepublish", doc(storagev1.CSIDriverSpec{}, "requiresRepublish")),
			text("Modes", doc(storagev1.CSIDriverSpec{}, "volumeLifecycleModes")),
			age(),
		}, csiDriver),
		"csistoragecapacities": table(columns{
			name(),
			text("StorageClassName", doc(storagev1.CSIStorageCapacity{}, "storageClassName")),
			text("Capacity", doc(storagev1.CSIStorageCapacity{}, "capacity")),
		}, func(c *storagev1.CSIStorageCapacity) []any {
			capacity := unset
			if c.Capacity != nil {
				capacity = quantity(c.Capacity)
			}
			return []any{c.Name, c.StorageClassName, capacity}
		}),
	}
}

func csiDriver(d *storagev1.CSIDriver) []any {
	tokens := unset
	if d.Spec.TokenRequests != nil {
		var audiences []string
		for _, t := range d.Spec.TokenRequests {
			audiences = append(audiences, t.Audience)
		}
		tokens = strings.Join(audiences, ",")
	}
	var modes []string
	for _, m := range d.Spec.VolumeLifecycleModes {
		modes = append(modes, string(m))
	}
	return []any{
		d.Name, deref(d.Spec.AttachRequired, true), deref(d.Spec.PodInfoOnMount, false), deref(d.Spec.StorageCapacity, false),
		tokens, deref(d.Spec.RequiresRepublish, false), or(strings.Join(modes, ","), none), old(d),
	}
}

func migrationTables() tables {
	return tables{
		"storageversionmigrations": table(columns{
			text("Name", doc(metav1.ObjectMeta{}, "name")),
			text("Resource", "What is migrated."),
			text("Status", "Status of the migration."),
		}, func(m *storagemigrationv1.StorageVersionMigration) []any {
			status := "Unknown"
			for _, c := range m.Status.Conditions {
				switch storagemigrationv1.MigrationConditionType(c.Type) {
				case storagemigrationv1.MigrationRunning, storagemigrationv1.MigrationFailed, storagemigrationv1.MigrationSucceeded:
					if c.Status == metav1.ConditionTrue {
						status = c.Type
					}
				}
			}
			return []any{m.Name, m.Spec.Resource.String(), status}
		}),
	}
}
