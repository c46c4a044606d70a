package podtolerationrestriction_test

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/periplus/periplus/apiserver/admission"
	"github.com/periplus/periplus/apiserver/admission/admissiontest"
	"github.com/periplus/periplus/apiserver/admission/podtolerationrestriction"
)

func TestPodTolerationRestriction(t *testing.T) {
	t.Parallel()
	namespace := func(name string, annotations map[string]string) *corev1.Namespace {
		return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: annotations}}
	}
	p, err := podtolerationrestriction.New(admissiontest.Objects{"namespaces": {
		namespace("plain", nil),
		namespace("gpu", map[string]string{
			"scheduler.alpha.kubernetes.io/defaultTolerations":   `[{"key":"gpu","operator":"Exists","effect":"NoSchedule"}]`,
			"scheduler.alpha.kubernetes.io/tolerationsWhitelist": `[{"key":"gpu","operator":"Exists"},{"key":"node.kubernetes.io/memory-pressure","operator":"Exists"}]`,
		}),
		namespace("free", map[string]string{"scheduler.alpha.kubernetes.io/tolerationsWhitelist": "", "scheduler.alpha.kubernetes.io/defaultTolerations": ""}),
		namespace("wrong", map[string]string{"scheduler.alpha.kubernetes.io/defaultTolerations": "{"}),
	}}, []byte(`
apiVersion: podtolerationrestriction.admission.k8s.io/v1alpha1
kind: Configuration
default: [{key: general, operator: Exists}]
whitelist: [{key: general, operator: Exists}]
`))
	if err != nil {
		t.Fatal(err)
	}
	in := func(namespace string, cpu string, tolerations ...corev1.Toleration) admission.Attributes {
		pod := &corev1.Pod{Spec: corev1.PodSpec{Tolerations: tolerations, Containers: []corev1.Container{{}}}}
		if cpu != "" {
			pod.Spec.Containers[0].Resources.Requests = corev1.ResourceList{"cpu": resource.MustParse(cpu)}
		}
		return admission.Attributes{Operation: admission.Create, Resource: corev1.SchemeGroupVersion.WithResource("pods"), Namespace: namespace, Object: pod}
	}
	has := func(keys ...string) func(*testing.T, *admission.Attributes) {
		return func(t *testing.T, a *admission.Attributes) {
			var got []string
			for _, x := range a.Object.(*corev1.Pod).Spec.Tolerations {
				got = append(got, x.Key)
			}
			if !slices.Equal(got, keys) {
				t.Errorf("%v, want %v", got, keys)
			}
		}
	}
	exists := func(key string) corev1.Toleration {
		return corev1.Toleration{Key: key, Operator: corev1.TolerationOpExists}
	}
	admissiontest.Run(t, p, map[string]admissiontest.Case{
		"of the cluster":    {Attributes: in("plain", ""), After: has("general")},
		"of the namespace":  {Attributes: in("gpu", "1"), After: has("gpu", "node.kubernetes.io/memory-pressure")},
		"covered":           {Attributes: in("gpu", "", exists("gpu")), After: has("gpu")},
		"not of it":         {Attributes: in("gpu", "", exists("other")), Want: "pod tolerations (possibly merged with namespace default tolerations) conflict with its namespace whitelist"},
		"not of the others": {Attributes: in("plain", "", exists("other")), Want: "conflict with its cluster whitelist"},
		"free":              {Attributes: in("free", "", exists("other")), After: has("other")},
		"wrong annotation":  {Attributes: in("wrong", ""), Want: "JSON"},
	})
	if _, err := podtolerationrestriction.New(admissiontest.Objects{}, []byte("kind: Configuration")); err == nil {
		t.Error("a configuration without a version is accepted")
	}
}
