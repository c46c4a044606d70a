package validation

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// PodResize checks an update of pods/resize (KEP-1287): cpu and memory may
// change, as long as the pod keeps its QoS class.
func PodResize(pod, old *corev1.Pod) field.ErrorList {
	if _, static := old.Annotations[corev1.MirrorPodAnnotationKey]; static {
		return field.ErrorList{field.Forbidden(field.NewPath(""), "static pods cannot be resized")}
	}
	if old.Spec.OS != nil && old.Spec.OS.Name == corev1.Windows {
		return field.ErrorList{field.Forbidden(field.NewPath(""), "windows pods cannot be resized")}
	}
	c := newPodSpecCheck(&pod.Spec, &pod.ObjectMeta)
	spec := field.NewPath("spec")
	c.metadataAndSpec()
	if class := old.Status.QOSClass; class != "" && class != QOSClass(pod) || class == "" && QOSClass(old) != QOSClass(pod) {
		c.invalid(spec, pod.Status.QOSClass, "Pod QOS Class may not change as a result of resizing")
	}
	if !resizable(old) {
		c.forbidden(spec, "Pod running on node without support for resize")
	}
	c.podLevelRemoved(old, spec.Child("resources"))
	if !c.sameContainers(old, spec) {
		return c.list
	}
	rest := pod.Spec.DeepCopy()
	for i := range rest.InitContainers {
		now, before, at := &rest.InitContainers[i], &old.Spec.InitContainers[i], spec.Child("initContainers").Index(i)
		changed := !Equal(now, before)
		c.removed(&now.Resources, &before.Resources, "resource", at.Child("resources"))
		keepComputeOf(now, before)
		if !Equal(now, before) {
			c.forbidden(at, "only cpu and memory resources for init or sidecar containers are mutable")
		}
		if sidecar := now.RestartPolicy != nil && *now.RestartPolicy == corev1.ContainerRestartPolicyAlways; changed && !sidecar {
			for _, r := range pod.Spec.InitContainers[i].ResizePolicy {
				if r.RestartPolicy == corev1.RestartContainer {
					c.forbidden(at, "non-sidecar init containers with a resize policy of RestartContainer cannot be resized")
				}
			}
		}
	}
	for i := range rest.Containers {
		now, before := &rest.Containers[i], &old.Spec.Containers[i]
		c.removed(&now.Resources, &before.Resources, "resource", spec.Child("containers").Index(i).Child("resources"))
		keepComputeOf(now, before)
		if !Equal(now, before) {
			c.forbidden(spec, "only cpu and memory resources are mutable")
		}
	}
	if !Equal(rest.Volumes, old.Spec.Volumes) {
		c.forbidden(spec.Child("volumes"), "volumes are immutable on resize when InPlacePodVerticalScalingMemoryBackedVolumes feature gate is disabled")
	}
	if len(c.list) > 0 {
		return c.list
	}
	rest.Resources = computeOf(rest.Resources, old.Spec.Resources)
	if !Equal(rest, &old.Spec) {
		c.forbidden(spec, "only cpu and memory resources are mutable")
	}
	return c.list
}

// resizable reports whether the pod's node tells what resources its containers have.
func resizable(pod *corev1.Pod) bool {
	for i := range pod.Status.ContainerStatuses {
		if s := &pod.Status.ContainerStatuses[i]; s.State.Running != nil {
			return s.Resources != nil
		}
	}
	return true
}

func (c *podSpecCheck) podLevelRemoved(old *corev1.Pod, at *field.Path) {
	before, now := old.Spec.Resources, c.spec.Resources
	switch {
	case before == nil:
	case now == nil:
		c.forbidden(at, "pod-level resources cannot be removed")
	default:
		c.removed(now, before, "pod-level resource", at)
	}
	if !Equal(computeOf(now, before), before) && (before != nil || len(now.Requests)+len(now.Limits) > 0) {
		c.forbidden(field.NewPath("spec"), "only cpu and memory resources are mutable at pod-level")
	}
}

func (c *podSpecCheck) removed(now, before *corev1.ResourceRequirements, what string, at *field.Path) {
	gone := func(now, before corev1.ResourceList) bool {
		for name := range before {
			if _, ok := now[name]; !ok {
				return true
			}
		}
		return false
	}
	if gone(now.Requests, before.Requests) {
		c.forbidden(at.Child("requests"), what+" requests cannot be removed")
	}
	if gone(now.Limits, before.Limits) {
		c.forbidden(at.Child("limits"), what+" limits cannot be removed")
	}
}

func (c *podSpecCheck) sameContainers(old *corev1.Pod, at *field.Path) bool {
	before := len(c.list)
	same := func(now, old []corev1.Container, name string) {
		if len(now) != len(old) {
			c.forbidden(at.Child(name), name+" may not be added or removed on resize")
			return
		}
		for i := range old {
			if now[i].Name != old[i].Name {
				c.forbidden(at.Child(name).Index(i).Child("name"), name+" may not be renamed or reordered on resize")
			}
		}
	}
	same(c.spec.Containers, old.Spec.Containers, "containers")
	same(c.spec.InitContainers, old.Spec.InitContainers, "initContainers")
	return len(c.list) == before
}

// keepComputeOf sets what may be resized back to what it was.
func keepComputeOf(now, before *corev1.Container) {
	now.Resources = *computeOf(&now.Resources, &before.Resources)
}

// computeOf returns now with the cpu and memory of before.
func computeOf(now, before *corev1.ResourceRequirements) *corev1.ResourceRequirements {
	if now == nil {
		return before
	}
	out := now.DeepCopy()
	if before == nil {
		before = &corev1.ResourceRequirements{}
	}
	back := func(now *corev1.ResourceList, before corev1.ResourceList) {
		for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
			delete(*now, name)
			if q, ok := before[name]; ok {
				if *now == nil {
					*now = corev1.ResourceList{}
				}
				(*now)[name] = q
			}
		}
	}
	back(&out.Requests, before.Requests)
	back(&out.Limits, before.Limits)
	if len(out.Requests)+len(out.Limits)+len(out.Claims) == 0 && len(before.Requests)+len(before.Limits) == 0 && before.Claims == nil {
		return before
	}
	return out
}
