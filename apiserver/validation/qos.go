package validation

import (
	corev1 "k8s.io/api/core/v1"
)

// QOSClass computes the class of a pod from its cpu and memory: BestEffort if
// nothing is requested or limited, Guaranteed if every container requests both
// and exactly its limits, else Burstable. Resources of the pod itself, where
// given, stand for those of its containers.
func QOSClass(pod *corev1.Pod) corev1.PodQOSClass {
	if r := pod.Spec.Resources; r != nil && len(r.Requests)+len(r.Limits) > 0 {
		return requirementsClass(r)
	}
	class := corev1.PodQOSClass("")
	for _, containers := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range containers {
			class = combine(class, requirementsClass(&containers[i].Resources))
		}
	}
	if class == "" {
		return corev1.PodQOSBestEffort
	}
	return class
}

func requirementsClass(r *corev1.ResourceRequirements) corev1.PodQOSClass {
	class := corev1.PodQOSClass("")
	for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
		request, limit := r.Requests[name], r.Limits[name]
		switch {
		case !request.Equal(limit):
			class = corev1.PodQOSBurstable
		case request.IsZero():
			class = combine(class, corev1.PodQOSBestEffort)
		default:
			class = combine(class, corev1.PodQOSGuaranteed)
		}
	}
	return class
}

// combine is Burstable unless both classes are the same or there is only one.
func combine(a, b corev1.PodQOSClass) corev1.PodQOSClass {
	if a == "" || a == b {
		return b
	}
	return corev1.PodQOSBurstable
}
