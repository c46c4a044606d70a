package ownership_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/managedfields"

	"github.com/periplus/periplus/apiserver/ownership"
)

func benchPod(phase corev1.PodPhase) *corev1.Pod {
	return &corev1.Pod{
		TypeMeta:   metav1.TypeMeta{Kind: "Pod", APIVersion: "v1"},
		ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "default", UID: "u", Labels: map[string]string{"app": "web", "tier": "front"}},
		Spec: corev1.PodSpec{
			Containers: []corev1.Container{{
				Name: "web", Image: "web:1", Args: []string{"serve"}, Ports: []corev1.ContainerPort{{ContainerPort: 80, Protocol: "TCP"}},
				Env: []corev1.EnvVar{{Name: "A", Value: "1"}, {Name: "B", Value: "2"}},
			}},
			RestartPolicy: "Always", DNSPolicy: "ClusterFirst",
		},
		Status: corev1.PodStatus{
			Phase: phase, PodIP: "10.42.0.9", PodIPs: []corev1.PodIP{{IP: "10.42.0.9"}},
			Conditions: []corev1.PodCondition{{Type: "Ready", Status: "True"}, {Type: "PodScheduled", Status: "True"}},
		},
	}
}

// BenchmarkWrites compares noting owners here and in the library.
func BenchmarkWrites(b *testing.B) {
	types, err := library()
	if err != nil {
		b.Fatal(err)
	}
	gvk := corev1.SchemeGroupVersion.WithKind("Pod")
	upstream, err := managedfields.NewDefaultFieldManager(types, pods{}, pods{}, pods{}, gvk, gvk.GroupVersion(), "", nil)
	if err != nil {
		b.Fatal(err)
	}
	empty := &corev1.Pod{TypeMeta: metav1.TypeMeta{Kind: "Pod", APIVersion: "v1"}}
	live, next := benchPod(corev1.PodPending), benchPod(corev1.PodRunning)
	live.ManagedFields = upstream.UpdateNoErrors(empty, live, "creator").(*corev1.Pod).ManagedFields
	write := func(before, after *corev1.Pod) []metav1.ManagedFieldsEntry {
		w := ownership.Write{
			Manager: "m", APIVersion: "v1", Create: before == empty, Live: before.ManagedFields,
			Compare: func(_ string, into *ownership.Change) error { return ownership.Compare(before, after, nil, into) },
		}
		out, err := w.Owners()
		if err != nil {
			b.Fatal(err)
		}
		return out
	}
	for name, before := range map[string]*corev1.Pod{"create": empty, "update": live} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				write(before, next)
			}
		})
		b.Run(name+"/library", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				upstream.UpdateNoErrors(before, next, "m")
				next.ManagedFields = nil
			}
		})
	}
}

type pods struct{ plain }

func (pods) ConvertToVersion(obj runtime.Object, _ runtime.GroupVersioner) (runtime.Object, error) {
	return obj, nil
}
