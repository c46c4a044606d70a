package core

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/periplus/periplus/apiserver/defaults"
	"github.com/periplus/periplus/apiserver/registry"
	"github.com/periplus/periplus/apiserver/validation"
)

// podStatus is the strategy of pods/status. Labels and annotations may change
// with it, owners may not.
func podStatus() registry.Strategy {
	return registry.Funcs[*corev1.Pod]{
		DefaultFunc: defaultPodStatus,
		PrepareUpdate: func(_ context.Context, pod, old *corev1.Pod) {
			pod.Spec = old.Spec
			pod.Generation = old.Generation
			pod.DeletionTimestamp, pod.DeletionGracePeriodSeconds = old.DeletionTimestamp, old.DeletionGracePeriodSeconds
			pod.OwnerReferences = old.OwnerReferences
			keepPodStatus(&pod.Status, &old.Status)
			dropAlphaStatus(&pod.Status, &old.Status)
		},
		ValidateChange: func(_ context.Context, pod, old *corev1.Pod) field.ErrorList {
			return validation.PodStatusUpdate(pod, old)
		},
		WarningsFunc: func(_ context.Context, pod, _ *corev1.Pod) (list []string) {
			for i, ip := range pod.Status.PodIPs {
				list = append(list, validation.IPWarning(field.NewPath("status", "podIPs").Index(i).Child("ip"), ip.IP)...)
			}
			for i, ip := range pod.Status.HostIPs {
				list = append(list, validation.IPWarning(field.NewPath("status", "hostIPs").Index(i).Child("ip"), ip.IP)...)
			}
			return list
		},
	}
}

// defaultPodStatus also rounds the amounts that a kubelet reports.
func defaultPodStatus(pod *corev1.Pod) {
	defaults.Pod(pod)
	s := &pod.Status
	defaults.Resources(s.AllocatedResources)
	requirements := func(r *corev1.ResourceRequirements) {
		if r != nil {
			defaults.Resources(r.Limits)
			defaults.Resources(r.Requests)
		}
	}
	requirements(s.Resources)
	for _, list := range [][]corev1.ContainerStatus{s.ContainerStatuses, s.InitContainerStatuses, s.EphemeralContainerStatuses} {
		for i := range list {
			defaults.Resources(list[i].AllocatedResources)
			requirements(list[i].Resources)
		}
	}
}

// dropAlphaStatus removes what features that are off would say: the health of
// volumes (KEP-1432), digests of image volumes, claims for resources of nodes.
func dropAlphaStatus(status, old *corev1.PodStatus) {
	if len(old.VolumeHealth) == 0 {
		status.VolumeHealth = nil
	}
	if len(old.NodeAllocatableResourceClaimStatuses) == 0 {
		status.NodeAllocatableResourceClaimStatuses = nil
	}
	for _, list := range [][]corev1.ContainerStatus{status.ContainerStatuses, status.InitContainerStatuses, status.EphemeralContainerStatuses} {
		for i := range list {
			for j := range list[i].VolumeMounts {
				list[i].VolumeMounts[j].VolumeStatus = nil
			}
		}
	}
}

// keepPodStatus keeps what a kubelet may not know of or has lost.
func keepPodStatus(status, old *corev1.PodStatus) {
	if status.QOSClass == "" {
		status.QOSClass = old.QOSClass
	}
	if status.ResourceClaimStatuses == nil {
		status.ResourceClaimStatuses = old.ResourceClaimStatuses
	}
	if status.ExtendedResourceClaimStatus == nil {
		status.ExtendedResourceClaimStatus = old.ExtendedResourceClaimStatus
	}
	if status.ObservedGeneration == 0 {
		status.ObservedGeneration = old.ObservedGeneration
	}
	for i := range status.Conditions {
		c := &status.Conditions[i]
		if c.ObservedGeneration != 0 {
			continue
		}
		if j := slices.IndexFunc(old.Conditions, func(o corev1.PodCondition) bool { return o.Type == c.Type }); j >= 0 {
			c.ObservedGeneration = old.Conditions[j].ObservedGeneration
		}
	}
}

// PodEphemeralContainers returns the strategy of pods/ephemeralcontainers:
// only spec.ephemeralContainers is taken over.
func PodEphemeralContainers() registry.Strategy {
	return registry.Funcs[*corev1.Pod]{
		DefaultFunc: defaults.Pod,
		PrepareUpdate: func(_ context.Context, pod, old *corev1.Pod) {
			ephemeral := pod.Spec.EphemeralContainers
			pod.Spec = *old.Spec.DeepCopy()
			pod.Spec.EphemeralContainers = ephemeral
			pod.Status = old.Status
			metav1.ResetObjectMetaForStatus(pod, old)
			defaults.DropAlphaPodFields(&pod.Spec)
			setPodGeneration(pod, old)
		},
		ValidateChange: func(_ context.Context, pod, old *corev1.Pod) field.ErrorList {
			return validation.PodEphemeralContainers(pod, old)
		},
	}
}

// PodResize returns the strategy of pods/resize: only resources and resize
// policies are taken over.
func PodResize() registry.Strategy {
	return registry.Funcs[*corev1.Pod]{
		DefaultFunc: defaults.Pod,
		PrepareUpdate: func(_ context.Context, pod, old *corev1.Pod) {
			takeResources(pod, old)
			if pod.Spec.Resources == nil && old.Spec.Resources != nil {
				pod.Spec.Resources = old.Spec.Resources.DeepCopy()
			}
			defaults.PodLevelResources(pod)
			setPodGeneration(pod, old)
		},
		ValidateChange: func(_ context.Context, pod, old *corev1.Pod) field.ErrorList { return validation.PodResize(pod, old) },
	}
}

// takeResources makes pod equal to old but for its resources. Containers that
// do not correspond are left for validation to refuse.
func takeResources(pod, old *corev1.Pod) {
	wanted := pod.Spec
	if len(wanted.Containers) != len(old.Spec.Containers) || len(wanted.InitContainers) != len(old.Spec.InitContainers) {
		return
	}
	spec := old.Spec.DeepCopy()
	take := func(into, from []corev1.Container) bool {
		for i := range into {
			if into[i].Name != from[i].Name {
				return false
			}
			into[i].Resources, into[i].ResizePolicy = from[i].Resources, from[i].ResizePolicy
		}
		return true
	}
	if !take(spec.Containers, wanted.Containers) || !take(spec.InitContainers, wanted.InitContainers) {
		return
	}
	spec.Resources = wanted.Resources
	pod.Spec = *spec
	pod.Status = old.Status
	metav1.ResetObjectMetaForStatus(pod, old)
}
