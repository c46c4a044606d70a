package eviction

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	resourcehelper "k8s.io/component-helpers/resource"
	statsv1alpha1 "k8s.io/kubelet/pkg/apis/stats/v1alpha1"
)

// Limited says whether a pod may fill only so much of the disk: others need no look.
func Limited(pod *corev1.Pod) bool {
	for i := range pod.Spec.Volumes {
		if e := pod.Spec.Volumes[i].EmptyDir; e != nil && e.Medium != corev1.StorageMediumMemory && e.SizeLimit != nil && e.SizeLimit.Sign() > 0 {
			return true
		}
	}
	for _, list := range [][]corev1.Container{pod.Spec.Containers, pod.Spec.InitContainers} {
		for i := range list {
			if _, ok := list[i].Resources.Limits[corev1.ResourceEphemeralStorage]; ok {
				return true
			}
		}
	}
	return false
}

// OverLimit says which limit of the disk a pod exceeds, if any.
func OverLimit(pod *corev1.Pod, st *statsv1alpha1.PodStats, l Layout) (message string, over bool) {
	for i := range pod.Spec.Volumes {
		v := &pod.Spec.Volumes[i]
		if v.EmptyDir == nil || v.EmptyDir.Medium == corev1.StorageMediumMemory || v.EmptyDir.SizeLimit == nil || v.EmptyDir.SizeLimit.Sign() <= 0 {
			continue
		}
		for j := range st.VolumeStats {
			if vs := &st.VolumeStats[j]; vs.Name == v.Name && vs.UsedBytes != nil && bytes(*vs.UsedBytes).Cmp(*v.EmptyDir.SizeLimit) > 0 {
				return fmt.Sprintf("Usage of EmptyDir volume %q exceeds the limit %q. ", v.Name, v.EmptyDir.SizeLimit.String()), true
			}
		}
	}
	if limit, ok := resourcehelper.PodLimits(pod, resourcehelper.PodResourcesOptions{})[corev1.ResourceEphemeralStorage]; ok {
		if e := st.EphemeralStorage; e != nil && e.UsedBytes != nil && bytes(*e.UsedBytes).Cmp(limit) > 0 {
			return fmt.Sprintf("Pod ephemeral local storage usage exceeds the total limit of containers %s. ", limit.String()), true
		}
	}
	for i := range st.Containers {
		cs := &st.Containers[i]
		c := containerOf(pod, cs.Name)
		if c == nil {
			continue
		}
		limit, ok := c.Resources.Limits[corev1.ResourceEphemeralStorage]
		if !ok || limit.IsZero() {
			continue
		}
		one := &statsv1alpha1.PodStats{Containers: []statsv1alpha1.ContainerStats{*cs}}
		if used, _ := diskOf(one, pod, parts{logs: true, layers: !l.Images}); used > limit.Value() {
			return fmt.Sprintf("Container %s exceeded its local ephemeral storage limit %q. ", cs.Name, limit.String()), true
		}
	}
	return "", false
}
