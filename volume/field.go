package volume

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// PodField returns the value of a downward API fieldRef, for volumes as well as
// for environment variables. The specification's and the metadata's fields come
// from pod, addresses from status.
func PodField(pod *corev1.Pod, status *corev1.PodStatus, path string) (string, error) {
	if name, key, ok := subscript(path); ok {
		switch name {
		case "metadata.annotations":
			return pod.Annotations[key], nil
		case "metadata.labels":
			return pod.Labels[key], nil
		}
		return "", fmt.Errorf("fieldPath %q does not support subscript", path)
	}
	switch path {
	case "metadata.annotations":
		return formatMap(pod.Annotations), nil
	case "metadata.labels":
		return formatMap(pod.Labels), nil
	case "metadata.name":
		return pod.Name, nil
	case "metadata.namespace":
		return pod.Namespace, nil
	case "metadata.uid":
		return string(pod.UID), nil
	case "spec.nodeName":
		return pod.Spec.NodeName, nil
	case "spec.serviceAccountName":
		return pod.Spec.ServiceAccountName, nil
	case "status.hostIP":
		return status.HostIP, nil
	case "status.hostIPs":
		ips := make([]string, 0, len(status.HostIPs))
		for _, ip := range status.HostIPs {
			ips = append(ips, ip.IP)
		}
		return strings.Join(ips, ","), nil
	case "status.podIP":
		return status.PodIP, nil
	case "status.podIPs":
		ips := make([]string, 0, len(status.PodIPs))
		for _, ip := range status.PodIPs {
			ips = append(ips, ip.IP)
		}
		return strings.Join(ips, ","), nil
	}
	return "", fmt.Errorf("unsupported fieldPath: %v", path)
}

// subscript splits `metadata.labels['app']`.
func subscript(path string) (name, key string, ok bool) {
	rest, ok := strings.CutSuffix(path, "']")
	if !ok {
		return "", "", false
	}
	return strings.Cut(rest, "['")
}

// formatMap writes one line key="value" for each entry, in order of the keys.
func formatMap(m map[string]string) string {
	var b strings.Builder
	for i, k := range slices.Sorted(maps.Keys(m)) {
		if i > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(k)
		b.WriteByte('=')
		b.WriteString(strconv.Quote(m[k]))
	}
	return b.String()
}

// ContainerResource returns the value of a downward API resourceFieldRef:
// a request or limit in units of the divisor, rounded up. defaultContainer is
// the container if the reference names none. Limits that are not set are the
// node's allocatable amounts.
func ContainerResource(pod *corev1.Pod, ref *corev1.ResourceFieldSelector, defaultContainer string, allocatable corev1.ResourceList) (string, error) {
	name := ref.ContainerName
	if name == "" {
		name = defaultContainer
	}
	container := findContainer(pod, name)
	if container == nil {
		return "", fmt.Errorf("container %s not found", name)
	}
	kind, what, ok := strings.Cut(ref.Resource, ".")
	resourceName := corev1.ResourceName(what)
	known := resourceName == corev1.ResourceCPU || resourceName == corev1.ResourceMemory ||
		resourceName == corev1.ResourceEphemeralStorage || strings.HasPrefix(what, corev1.ResourceHugePagesPrefix)
	if !ok || !known || kind != "limits" && kind != "requests" {
		return "", fmt.Errorf("unsupported container resource : %v", ref.Resource)
	}
	var q resource.Quantity
	if kind == "limits" {
		q, ok = container.Resources.Limits[resourceName]
		if !ok || q.IsZero() {
			q = allocatable[resourceName]
		}
	} else {
		q = container.Resources.Requests[resourceName]
	}
	divisor := ref.Divisor
	if divisor.IsZero() {
		divisor = resource.MustParse("1")
	}
	if resourceName == corev1.ResourceCPU {
		return ceilDiv(q.MilliValue(), divisor.MilliValue()), nil
	}
	return ceilDiv(q.Value(), divisor.Value()), nil
}

func ceilDiv(value, divisor int64) string {
	return strconv.FormatInt(int64(math.Ceil(float64(value)/float64(divisor))), 10)
}

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
	return nil
}
