package defaults

import (
	corev1 "k8s.io/api/core/v1"
)

// Pod defaults a pod. Some of it holds for pods and not for templates: requests
// from limits, service links and host ports.
func Pod(pod *corev1.Pod) {
	spec := &pod.Spec
	PodSpec(spec)
	if grace := spec.TerminationGracePeriodSeconds; *grace < 0 {
		spec.TerminationGracePeriodSeconds = ptr[int64](1)
	}
	for _, containers := range [][]corev1.Container{spec.Containers, spec.InitContainers} {
		for i := range containers {
			requestsFromLimits(&containers[i].Resources)
		}
	}
	if spec.EnableServiceLinks == nil {
		spec.EnableServiceLinks = ptr(corev1.DefaultEnableServiceLinks)
	}
	if spec.HostNetwork {
		hostPorts(spec.Containers)
		hostPorts(spec.InitContainers)
	}
	podIPs(&pod.Status)
}

// PodTemplate defaults the template of a workload, and drops what its pods
// could not have anyway.
func PodTemplate(template *corev1.PodTemplateSpec) {
	DropAlphaPodFields(&template.Spec)
	PodSpec(&template.Spec)
}

// PodSpec defaults what pods and templates share.
func PodSpec(spec *corev1.PodSpec) {
	if spec.ServiceAccountName == "" {
		spec.ServiceAccountName = spec.DeprecatedServiceAccount
	}
	spec.DeprecatedServiceAccount = spec.ServiceAccountName
	if spec.DNSPolicy == "" {
		spec.DNSPolicy = corev1.DNSClusterFirst
	}
	if spec.RestartPolicy == "" {
		spec.RestartPolicy = corev1.RestartPolicyAlways
	}
	if spec.SecurityContext == nil {
		spec.SecurityContext = &corev1.PodSecurityContext{}
	}
	if spec.TerminationGracePeriodSeconds == nil {
		spec.TerminationGracePeriodSeconds = ptr[int64](corev1.DefaultTerminationGracePeriodSeconds)
	}
	if spec.SchedulerName == "" {
		spec.SchedulerName = corev1.DefaultSchedulerName
	}
	Resources(spec.Overhead)
	requirements(spec.Resources)
	for i := range spec.Volumes {
		Volume(&spec.Volumes[i])
	}
	for i := range spec.InitContainers {
		Container(&spec.InitContainers[i])
	}
	for i := range spec.Containers {
		Container(&spec.Containers[i])
	}
	for i := range spec.EphemeralContainers {
		Container((*corev1.Container)(&spec.EphemeralContainers[i].EphemeralContainerCommon))
	}
}

// podIPs keeps the singular address and the list of addresses in step; the
// singular one wins.
func podIPs(status *corev1.PodStatus) {
	switch {
	case status.PodIP == "" && len(status.PodIPs) > 0:
		status.PodIP = status.PodIPs[0].IP
	case status.PodIP != "" && (len(status.PodIPs) == 0 || status.PodIPs[0].IP != status.PodIP):
		status.PodIPs = []corev1.PodIP{{IP: status.PodIP}}
	}
}

// hostPorts makes the ports of a pod on the host's network the host's ports.
func hostPorts(containers []corev1.Container) {
	for i := range containers {
		for j := range containers[i].Ports {
			if port := &containers[i].Ports[j]; port.HostPort == 0 {
				port.HostPort = port.ContainerPort
			}
		}
	}
}

func ptr[T any](v T) *T { return &v }
