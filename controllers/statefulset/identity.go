package statefulset

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/periplus/periplus/controllers"
)

func podName(set *appsv1.StatefulSet, ordinal int) string {
	return set.Name + "-" + strconv.Itoa(ordinal)
}

// ordinalOf returns the number in a pod's name, -1 if the name is not the set's.
func ordinalOf(set *appsv1.StatefulSet, pod *corev1.Pod) int {
	rest, ok := strings.CutPrefix(pod.Name, set.Name+"-")
	if !ok {
		return -1
	}
	n, err := strconv.Atoi(rest)
	if err != nil || n < 0 || strconv.Itoa(n) != rest {
		return -1
	}
	return n
}

func claimName(set *appsv1.StatefulSet, template *corev1.PersistentVolumeClaim, ordinal int) string {
	return fmt.Sprintf("%s-%s-%d", template.Name, set.Name, ordinal)
}

// newPod makes the pod with a number, of one revision of the template.
func newPod(set *appsv1.StatefulSet, revision *appsv1.ControllerRevision, ordinal int) (*corev1.Pod, error) {
	template, err := controllers.TemplateOf(revision)
	if err != nil {
		return nil, err
	}
	pod := controllers.PodFromTemplate(template, set, metav1.NewControllerRef(set, kind))
	pod.GenerateName, pod.Name = "", podName(set, ordinal)
	identify(set, pod, ordinal)
	pod.Labels[appsv1.StatefulSetRevisionLabel] = revision.Name
	pod.Spec.Hostname, pod.Spec.Subdomain = pod.Name, set.Spec.ServiceName
	return pod, nil
}

// identify gives a pod its labels and the volumes of its claims.
func identify(set *appsv1.StatefulSet, pod *corev1.Pod, ordinal int) {
	if pod.Labels == nil {
		pod.Labels = map[string]string{}
	}
	pod.Labels[appsv1.StatefulSetPodNameLabel] = pod.Name
	pod.Labels[appsv1.PodIndexLabel] = strconv.Itoa(ordinal)
	var volumes []corev1.Volume
	for i := range set.Spec.VolumeClaimTemplates {
		t := &set.Spec.VolumeClaimTemplates[i]
		volumes = append(volumes, corev1.Volume{Name: t.Name, VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claimName(set, t, ordinal)},
		}})
	}
	for _, v := range pod.Spec.Volumes {
		if !slices.ContainsFunc(volumes, func(c corev1.Volume) bool { return c.Name == v.Name }) {
			volumes = append(volumes, v)
		}
	}
	pod.Spec.Volumes = volumes
}

// identified reports whether a pod has its labels.
func identified(pod *corev1.Pod, ordinal int) bool {
	return pod.Labels[appsv1.StatefulSetPodNameLabel] == pod.Name && pod.Labels[appsv1.PodIndexLabel] == strconv.Itoa(ordinal)
}

// newClaim makes a claim of a pod.
func newClaim(set *appsv1.StatefulSet, template *corev1.PersistentVolumeClaim, ordinal int) *corev1.PersistentVolumeClaim {
	claim := template.DeepCopy()
	claim.Name, claim.Namespace = claimName(set, template, ordinal), set.Namespace
	claim.Labels = maps.Clone(claim.Labels)
	if claim.Labels == nil {
		claim.Labels = map[string]string{}
	}
	maps.Copy(claim.Labels, set.Spec.Selector.MatchLabels)
	claim.Status = corev1.PersistentVolumeClaimStatus{}
	return claim
}
