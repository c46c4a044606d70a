package inject

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/periplus/periplus/mesh"
)

// wanted reports whether a pod gets a sidecar. That its namespace, or the pod
// itself, asks for one is what the webhook is selected by.
func wanted(p *corev1.Pod) bool {
	switch {
	case p.Spec.HostNetwork:
		return false // the rules would be those of the machine
	case p.Annotations[mesh.AnnotationStatus] != "" && slices.ContainsFunc(p.Spec.InitContainers, isProxy):
		return false // already done
	}
	v, ok := p.Labels[mesh.LabelInject]
	if !ok {
		v = p.Annotations[mesh.LabelInject]
	}
	switch v {
	case "false", "n", "no", "off", "0":
		return false
	}
	return true
}

func isProxy(c corev1.Container) bool { return c.Name == proxyName }
