package eviction

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// Reason is that of evicted pods and of the events about them.
const Reason = "Evicted"

// Message says why a pod goes for the first of the thresholds, and the annotations
// of the event say which containers used too much.
func Message(name corev1.ResourceName, pod *corev1.Pod, stats Stats, met []Threshold, o Observations) (message string, annotations map[string]string) {
	message = fmt.Sprintf("The node was low on resource: %v. ", name)
	for _, t := range met {
		if t.Signal.Resource() != name {
			continue
		}
		if have, ok := o[t.Signal]; ok {
			q := t.Value.Of(have.Capacity)
			message += fmt.Sprintf("Threshold quantity: %v, available: %v. ", &q, &have.Available)
			break
		}
	}
	annotations = map[string]string{}
	st, ok := stats(pod)
	if !ok {
		return message, annotations
	}
	if r := pod.Spec.Resources; name == corev1.ResourceMemory && r != nil && st.Memory != nil {
		if request, ok := r.Requests[name]; ok {
			used := resource.NewQuantity(memoryOf(st), resource.BinarySI).String()
			message += fmt.Sprintf("Pod %s was using %s, request is %s, has larger consumption of %v. ", pod.Name, used, request.String(), name)
			annotations["offending_pod"], annotations["offending_pod_usage"] = pod.Name, used
		}
	}
	var containers, usages []string
	for i := range st.Containers {
		cs := &st.Containers[i]
		c := containerOf(pod, cs.Name)
		if c == nil {
			continue
		}
		var used *resource.Quantity
		switch name {
		case corev1.ResourceMemory:
			if cs.Memory != nil && cs.Memory.WorkingSetBytes != nil {
				used = bytes(*cs.Memory.WorkingSetBytes)
			}
		case corev1.ResourceEphemeralStorage:
			if cs.Rootfs != nil && cs.Rootfs.UsedBytes != nil && cs.Logs != nil && cs.Logs.UsedBytes != nil {
				used = bytes(*cs.Rootfs.UsedBytes + *cs.Logs.UsedBytes)
			}
		}
		request := c.Resources.Requests[name]
		if used == nil || used.Cmp(request) <= 0 {
			continue
		}
		message += fmt.Sprintf("Container %s was using %s, request is %s, has larger consumption of %v. ", c.Name, used, request.String(), name)
		containers, usages = append(containers, c.Name), append(usages, used.String())
	}
	annotations["offending_containers"] = strings.Join(containers, ",")
	annotations["offending_containers_usage"] = strings.Join(usages, ",")
	annotations["starved_resource"] = string(name)
	return message, annotations
}

func containerOf(pod *corev1.Pod, name string) *corev1.Container {
	for _, list := range [][]corev1.Container{pod.Spec.Containers, pod.Spec.InitContainers} {
		for i := range list {
			if list[i].Name == name {
				return &list[i]
			}
		}
	}
	return nil
}

// Admits judges whether a pod may start on a node under pressure: critical ones may;
// for want of memory only those that requested none must stay out, unless they
// tolerate the taint.
func Admits(conditions []corev1.NodeConditionType, pod *corev1.Pod, class corev1.PodQOSClass, critical bool) (message string, ok bool) {
	if len(conditions) == 0 || critical {
		return "", true
	}
	if len(conditions) == 1 && conditions[0] == corev1.NodeMemoryPressure {
		if class != corev1.PodQOSBestEffort {
			return "", true
		}
		taint := corev1.Taint{Key: corev1.TaintNodeMemoryPressure, Effect: corev1.TaintEffectNoSchedule}
		for i := range pod.Spec.Tolerations {
			t := &pod.Spec.Tolerations[i]
			if (t.Key == "" || t.Key == taint.Key) && (t.Effect == "" || t.Effect == taint.Effect) && (t.Operator == corev1.TolerationOpExists || t.Key != "" && t.Value == "") {
				return "", true
			}
		}
	}
	return fmt.Sprintf("The node had condition: %v. ", conditions), false
}
