package validation_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/periplus/periplus/apiserver/defaults"
	"github.com/periplus/periplus/apiserver/validation"
)

// BenchmarkPod measures the rules that every pod passes through when it is
// created: defaults and validation.
func BenchmarkPod(b *testing.B) {
	pod := newPod()
	c := &pod.Spec.Containers[0]
	c.Ports = []corev1.ContainerPort{{ContainerPort: 80}}
	c.ReadinessProbe = &corev1.Probe{ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Port: intstr.FromInt32(80)}}}
	c.Env = []corev1.EnvVar{{Name: "A", Value: "b"}, {Name: "C", Value: "d"}}
	pod.Spec.Volumes = []corev1.Volume{{Name: "token", VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{
		Sources: []corev1.VolumeProjection{{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Path: "token"}}}}}}}
	c.VolumeMounts = []corev1.VolumeMount{{Name: "token", MountPath: "/run"}}
	b.ReportAllocs()
	for b.Loop() {
		defaults.Pod(pod)
		if errs := validation.Pod(pod); len(errs) > 0 {
			b.Fatal(errs)
		}
	}
}
