package kubelet

import (
	"encoding/json"
	"hash/fnv"
	"maps"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	kubelettypes "k8s.io/kubelet/pkg/types"
)

// Annotations of sandboxes and containers in the runtime, with upstream's names.
const (
	annotationHash          = "io.kubernetes.container.hash"
	annotationRestartCount  = "io.kubernetes.container.restartCount"
	annotationMessagePath   = "io.kubernetes.container.terminationMessagePath"
	annotationMessagePolicy = "io.kubernetes.container.terminationMessagePolicy"
	annotationPreStop       = "io.kubernetes.container.preStopHandler"
	annotationPorts         = "io.kubernetes.container.ports"
	annotationDeletionGrace = "io.kubernetes.pod.deletionGracePeriod"
	annotationGrace         = "io.kubernetes.pod.terminationGracePeriod"

	annotationConfigSource = "kubernetes.io/config.source"
	annotationConfigHash   = "kubernetes.io/config.hash"
	annotationConfigMirror = corev1.MirrorPodAnnotationKey
)

func podLabels(pod *corev1.Pod) map[string]string {
	return map[string]string{
		kubelettypes.KubernetesPodNameLabel:      pod.Name,
		kubelettypes.KubernetesPodNamespaceLabel: pod.Namespace,
		kubelettypes.KubernetesPodUIDLabel:       string(pod.UID),
	}
}

// sandboxLabels are the pod's own labels and the three that identify it.
func sandboxLabels(pod *corev1.Pod) map[string]string {
	l := maps.Clone(pod.Labels)
	if l == nil {
		l = map[string]string{}
	}
	maps.Copy(l, podLabels(pod))
	return l
}

func sandboxAnnotations(pod *corev1.Pod) map[string]string {
	a := maps.Clone(pod.Annotations)
	if a == nil {
		a = map[string]string{}
	}
	if a[annotationConfigSource] == "" {
		a[annotationConfigSource] = "api"
	}
	return a
}

func containerLabels(pod *corev1.Pod, c *corev1.Container) map[string]string {
	l := podLabels(pod)
	l[kubelettypes.KubernetesContainerNameLabel] = c.Name
	return l
}

func containerAnnotations(pod *corev1.Pod, c *corev1.Container, restarts int32) map[string]string {
	a := map[string]string{
		annotationHash:          containerHash(c),
		annotationRestartCount:  strconv.Itoa(int(restarts)),
		annotationMessagePath:   c.TerminationMessagePath,
		annotationMessagePolicy: string(c.TerminationMessagePolicy),
	}
	if s := pod.DeletionGracePeriodSeconds; s != nil {
		a[annotationDeletionGrace] = strconv.FormatInt(*s, 10)
	}
	if s := pod.Spec.TerminationGracePeriodSeconds; s != nil {
		a[annotationGrace] = strconv.FormatInt(*s, 10)
	}
	if c.Lifecycle != nil && c.Lifecycle.PreStop != nil {
		if b, err := json.Marshal(c.Lifecycle.PreStop); err == nil {
			a[annotationPreStop] = string(b)
		}
	}
	if len(c.Ports) > 0 {
		if b, err := json.Marshal(c.Ports); err == nil {
			a[annotationPorts] = string(b)
		}
	}
	return a
}

// containerHash changes when a running container has to be replaced: with its
// name or image, the only such fields that an update may change.
func containerHash(c *corev1.Container) string {
	b, _ := json.Marshal(map[string]string{"name": c.Name, "image": c.Image})
	h := fnv.New32a()
	h.Write(b)
	return strconv.FormatUint(uint64(h.Sum32()), 16)
}
