package validation_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/periplus/periplus/apiserver/validation"
)

// TestEqual compares specs that are the same, that mean the same, and that do not.
func TestEqual(t *testing.T) {
	t.Parallel()
	spec := func(cpu string, change func(*corev1.PodSpec)) corev1.PodSpec {
		s := corev1.PodSpec{Containers: []corev1.Container{{
			Name: "c", Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse(cpu), "memory": resource.MustParse("1Gi")}},
		}}}
		if change != nil {
			change(&s)
		}
		return s
	}
	for name, tt := range map[string]struct {
		other corev1.PodSpec
		want  bool
	}{
		"the same":           {spec("1", nil), true},
		"in other words":     {spec("1000m", nil), true},
		"empty, not nil":     {spec("1", func(s *corev1.PodSpec) { s.Volumes, s.NodeSelector = []corev1.Volume{}, map[string]string{} }), true},
		"another amount":     {spec("2", nil), false},
		"another image":      {spec("1", func(s *corev1.PodSpec) { s.Containers[0].Image = "x" }), false},
		"a pointer to empty": {spec("1", func(s *corev1.PodSpec) { s.SecurityContext = &corev1.PodSecurityContext{} }), false},
	} {
		one := spec("1", nil)
		if got := validation.Equal(one, tt.other); got != tt.want {
			t.Errorf("%s: equal is %v", name, got)
		}
		if got := validation.Equal(&one, &tt.other); got != tt.want {
			t.Errorf("%s, by pointers: equal is %v", name, got)
		}
	}
}
