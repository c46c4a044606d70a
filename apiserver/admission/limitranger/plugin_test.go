package limitranger_test

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/periplus/periplus/apiserver/admission"
	"github.com/periplus/periplus/apiserver/admission/limitranger"
)

// objects is a namespace with one LimitRange.
type objects []corev1.LimitRangeItem

func (o objects) Get(schema.GroupVersionResource, string, string) (runtime.Object, error) {
	return nil, nil
}

func (o objects) List(schema.GroupVersionResource, string) ([]runtime.Object, error) {
	return []runtime.Object{&corev1.LimitRange{Spec: corev1.LimitRangeSpec{Limits: o}}}, nil
}

func amounts(pairs ...string) corev1.ResourceList {
	out := corev1.ResourceList{}
	for i := 0; i < len(pairs); i += 2 {
		out[corev1.ResourceName(pairs[i])] = resource.MustParse(pairs[i+1])
	}
	return out
}

func pod(requests, limits corev1.ResourceList) *corev1.Pod {
	return &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Resources: corev1.ResourceRequirements{Requests: requests, Limits: limits}}}}}
}

func attributes(obj runtime.Object, resource string) *admission.Attributes {
	return &admission.Attributes{Operation: admission.Create, Resource: corev1.SchemeGroupVersion.WithResource(resource), Namespace: "n", Name: "x", Object: obj}
}

func TestDefaults(t *testing.T) {
	t.Parallel()
	plugin := limitranger.New(objects{{Type: corev1.LimitTypeContainer, Default: amounts("cpu", "1", "memory", "1Gi"), DefaultRequest: amounts("cpu", "100m")}})
	p := pod(nil, amounts("memory", "2Gi"))
	p.Spec.InitContainers = []corev1.Container{{Name: "i"}}
	if err := plugin.(admission.Mutator).Admit(context.Background(), attributes(p, "pods")); err != nil {
		t.Fatal(err)
	}
	c := p.Spec.Containers[0].Resources
	if c.Requests.Cpu().String() != "100m" || c.Limits.Cpu().String() != "1" || c.Limits.Memory().String() != "2Gi" {
		t.Errorf("%+v", c)
	}
	want := "LimitRanger plugin set: cpu request for container c; cpu limit for container c; cpu request for init container i; cpu, memory limit for init container i"
	if got := p.Annotations["kubernetes.io/limit-ranger"]; got != want {
		t.Errorf("annotation:\n got %s\nwant %s", got, want)
	}
}

func TestBounds(t *testing.T) {
	t.Parallel()
	claim := &corev1.PersistentVolumeClaim{Spec: corev1.PersistentVolumeClaimSpec{Resources: corev1.VolumeResourceRequirements{Requests: amounts("storage", "5Gi")}}}
	for name, c := range map[string]struct {
		item corev1.LimitRangeItem
		obj  runtime.Object
		want string
	}{
		"fits":       {corev1.LimitRangeItem{Type: "Container", Min: amounts("cpu", "1"), Max: amounts("cpu", "2")}, pod(amounts("cpu", "1"), amounts("cpu", "2")), ""},
		"too little": {corev1.LimitRangeItem{Type: "Container", Min: amounts("cpu", "100m")}, pod(amounts("cpu", "50m"), nil), "minimum cpu usage per Container is 100m, but request is 50m"},
		"unnamed":    {corev1.LimitRangeItem{Type: "Container", Min: amounts("cpu", "100m")}, pod(nil, nil), "minimum cpu usage per Container is 100m.  No request is specified"},
		"too much": {corev1.LimitRangeItem{Type: "Pod", Max: amounts("cpu", "1", "memory", "1Gi")}, pod(nil, amounts("cpu", "2")),
			"[maximum cpu usage per Pod is 1, but limit is 2, maximum memory usage per Pod is 1Gi.  No limit is specified]"},
		"ratio": {corev1.LimitRangeItem{Type: "Container", MaxLimitRequestRatio: amounts("cpu", "2")}, pod(amounts("cpu", "100m"), amounts("cpu", "300m")),
			"cpu max limit to request ratio per Container is 2, but provided ratio is 3.000000"},
		"claim":         {corev1.LimitRangeItem{Type: "PersistentVolumeClaim", Max: amounts("storage", "1Gi")}, claim, "maximum storage usage per PersistentVolumeClaim is 1Gi, but request is 5Gi"},
		"claim's other": {corev1.LimitRangeItem{Type: "Container", Max: amounts("storage", "1Gi")}, claim, ""},
	} {
		resource := "pods"
		if c.obj == claim {
			resource = "persistentvolumeclaims"
		}
		want := c.want
		if want != "" {
			want = resource + ` "x" is forbidden: ` + want
		}
		got := ""
		if err := limitranger.New(objects{c.item}).(admission.Validator).Validate(context.Background(), attributes(c.obj, resource)); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%s:\n got %s\nwant %s", name, got, want)
		}
	}
}
