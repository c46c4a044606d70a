package defaults

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	resourcehelper "k8s.io/component-helpers/resource"
)

// PodLevelResources completes spec.resources of a pod that uses it (KEP-2837):
//
//	huge page limits  the sum over the containers, where not given
//	requests          what the containers request together, else the pod's limit
//	limits            the sum of the containers' limits if each has one, and at
//	                  least the pod's request
//
// It runs when the pod is complete, after admission has added containers.
func PodLevelResources(pod *corev1.Pod) {
	r := pod.Spec.Resources
	if r == nil || len(r.Requests) == 0 && len(r.Limits) == 0 {
		return
	}
	counted := &corev1.Pod{Spec: corev1.PodSpec{Containers: pod.Spec.Containers, InitContainers: pod.Spec.InitContainers}}
	limits := resourcehelper.AggregateContainerLimits(counted, resourcehelper.PodResourcesOptions{})
	for name, quantity := range limits {
		if isHugePage(name) && resourcehelper.IsSupportedPodLevelResource(name) && !has(r.Limits, name) && !has(r.Requests, name) {
			set(&r.Limits, name, quantity)
		}
	}
	for name, quantity := range resourcehelper.AggregateContainerRequests(counted, resourcehelper.PodResourcesOptions{}) {
		if !isHugePage(name) && resourcehelper.IsSupportedPodLevelResource(name) && !has(r.Requests, name) {
			set(&r.Requests, name, quantity)
		}
	}
	for name, quantity := range r.Limits {
		if resourcehelper.IsSupportedPodLevelResource(name) && !has(r.Requests, name) {
			set(&r.Requests, name, quantity)
		}
	}
	for name, request := range r.Requests {
		limit, ok := limits[name]
		if !ok || has(r.Limits, name) || !resourcehelper.IsSupportedPodLevelResource(name) || !allLimited(&pod.Spec, name) {
			continue
		}
		if request.Cmp(limit) > 0 {
			limit = request
		}
		set(&r.Limits, name, limit)
	}
}

// allLimited reports whether every container has a limit of the resource.
func allLimited(spec *corev1.PodSpec, name corev1.ResourceName) bool {
	for _, containers := range [][]corev1.Container{spec.Containers, spec.InitContainers} {
		for i := range containers {
			if !has(containers[i].Resources.Limits, name) {
				return false
			}
		}
	}
	return true
}

func has(list corev1.ResourceList, name corev1.ResourceName) bool {
	_, ok := list[name]
	return ok
}

func isHugePage(name corev1.ResourceName) bool {
	return strings.HasPrefix(string(name), corev1.ResourceHugePagesPrefix)
}

func set(list *corev1.ResourceList, name corev1.ResourceName, quantity resource.Quantity) {
	if *list == nil {
		*list = corev1.ResourceList{}
	}
	(*list)[name] = quantity.DeepCopy()
}
