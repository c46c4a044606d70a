package volume_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/periplus/periplus/volume"
)

func TestPodField(t *testing.T) {
	t.Parallel()
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: "p", Namespace: "ns", UID: "u",
			Labels:      map[string]string{"b": "2", "a/x": "1"},
			Annotations: map[string]string{"note": "two\nlines \"quoted\""},
		},
		Spec: corev1.PodSpec{NodeName: "n", ServiceAccountName: "sa"},
	}
	status := &corev1.PodStatus{
		HostIP: "10.0.0.1", PodIP: "10.42.0.2",
		PodIPs: []corev1.PodIP{{IP: "10.42.0.2"}, {IP: "fd00::2"}}, HostIPs: []corev1.HostIP{{IP: "10.0.0.1"}},
	}
	for path, want := range map[string]string{
		"metadata.name": "p", "metadata.namespace": "ns", "metadata.uid": "u",
		"metadata.labels":              "a/x=\"1\"\nb=\"2\"",
		"metadata.labels['b']":         "2",
		"metadata.labels['a/x']":       "1",
		"metadata.labels['no']":        "",
		"metadata.annotations":         `note="two\nlines \"quoted\""`,
		"metadata.annotations['note']": "two\nlines \"quoted\"",
		"spec.nodeName":                "n", "spec.serviceAccountName": "sa",
		"status.podIP": "10.42.0.2", "status.podIPs": "10.42.0.2,fd00::2",
		"status.hostIP": "10.0.0.1", "status.hostIPs": "10.0.0.1",
	} {
		if got, err := volume.PodField(pod, status, path); err != nil || got != want {
			t.Errorf("%s: got %q, %v; want %q", path, got, err, want)
		}
	}
	for _, path := range []string{"spec.containers", "metadata.name['x']", ""} {
		if got, err := volume.PodField(pod, status, path); err == nil {
			t.Errorf("%s: got %q, want an error", path, got)
		}
	}
}

func TestContainerResource(t *testing.T) {
	t.Parallel()
	list := func(cpu, memory string) corev1.ResourceList {
		return corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse(memory)}
	}
	pod := &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{
		{Name: "c", Resources: corev1.ResourceRequirements{Requests: list("250m", "64Mi"), Limits: list("1500m", "128Mi")}},
		{Name: "free"},
	}}}
	node := list("4", "8Gi")
	for _, c := range []struct{ container, resource, divisor, want string }{
		{"c", "limits.cpu", "0", "2"}, {"c", "limits.cpu", "1m", "1500"}, {"c", "requests.cpu", "1", "1"}, {"c", "requests.cpu", "1m", "250"},
		{"c", "limits.memory", "1Mi", "128"}, {"c", "requests.memory", "0", "67108864"},
		{"free", "limits.cpu", "0", "4"}, {"free", "limits.memory", "1Gi", "8"}, {"free", "requests.memory", "1Mi", "0"},
	} {
		ref := &corev1.ResourceFieldSelector{ContainerName: c.container, Resource: c.resource, Divisor: resource.MustParse(c.divisor)}
		if got, err := volume.ContainerResource(pod, ref, "", node); err != nil || got != c.want {
			t.Errorf("%v: got %q, %v", c, got, err)
		}
	}
	for _, ref := range []*corev1.ResourceFieldSelector{{ContainerName: "no", Resource: "limits.cpu"}, {ContainerName: "c", Resource: "limits.gpu"}, {ContainerName: "c", Resource: "cpu"}} {
		if got, err := volume.ContainerResource(pod, ref, "", node); err == nil {
			t.Errorf("%v: got %q, want an error", ref, got)
		}
	}
}
