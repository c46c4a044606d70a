package kubelet

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// Questions about pod specs that several files ask.

func isSidecar(c *corev1.Container) bool {
	return c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways
}

func isHostNetwork(pod *corev1.Pod) bool { return pod.Spec.HostNetwork }

func isStatic(pod *corev1.Pod) bool {
	source, ok := pod.Annotations[annotationConfigSource]
	return ok && source != "api"
}

func isMirror(pod *corev1.Pod) bool {
	_, ok := pod.Annotations[annotationConfigMirror]
	return ok
}

func podFinished(s *corev1.PodStatus) bool {
	return s.Phase == corev1.PodSucceeded || s.Phase == corev1.PodFailed
}

// ephemeral returns an ephemeral container in the shape of the others.
func ephemeral(c *corev1.EphemeralContainer) *corev1.Container {
	v := corev1.Container(c.EphemeralContainerCommon)
	return &v
}

// findContainer returns the container of the spec, of whatever kind, by name.
func findContainer(pod *corev1.Pod, name string) *corev1.Container {
	for i := range pod.Spec.Containers {
		if pod.Spec.Containers[i].Name == name {
			return &pod.Spec.Containers[i]
		}
	}
	for i := range pod.Spec.InitContainers {
		if pod.Spec.InitContainers[i].Name == name {
			return &pod.Spec.InitContainers[i]
		}
	}
	for i := range pod.Spec.EphemeralContainers {
		if pod.Spec.EphemeralContainers[i].Name == name {
			return ephemeral(&pod.Spec.EphemeralContainers[i])
		}
	}
	return nil
}

// shouldRestart says whether a container that exited with code is to run again:
// by its own rules (KEP-5307), its own policy, else the pod's.
func shouldRestart(pod *corev1.Pod, c *corev1.Container, code int32) bool {
	for _, r := range c.RestartPolicyRules {
		if r.ExitCodes == nil {
			continue
		}
		in := slices.Contains(r.ExitCodes.Values, code)
		if in == (r.ExitCodes.Operator == corev1.ContainerRestartRuleOnExitCodesOpIn) {
			return r.Action == corev1.ContainerRestartRuleActionRestart
		}
	}
	policy := pod.Spec.RestartPolicy
	if c.RestartPolicy != nil {
		policy = corev1.RestartPolicy(*c.RestartPolicy)
	}
	switch policy {
	case corev1.RestartPolicyNever:
		return false
	case corev1.RestartPolicyOnFailure:
		return code != 0
	}
	return true
}

// mayRestart says whether anything of the pod can ever start a second time after
// a failure, so that a lost sandbox is worth replacing.
func mayRestart(pod *corev1.Pod) bool {
	if pod.Spec.RestartPolicy != corev1.RestartPolicyNever {
		return true
	}
	return slices.ContainsFunc(pod.Spec.Containers, func(c corev1.Container) bool {
		return len(c.RestartPolicyRules) > 0 ||
			c.RestartPolicy != nil && *c.RestartPolicy != corev1.ContainerRestartPolicyNever
	})
}

// podKey is upstream's rendering of a pod in messages: name_namespace(uid).
func podKey(pod *corev1.Pod) string {
	return pod.Name + "_" + pod.Namespace + "(" + string(pod.UID) + ")"
}
