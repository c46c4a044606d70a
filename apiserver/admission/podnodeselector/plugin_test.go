package podnodeselector_test

import (
	"maps"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/periplus/periplus/apiserver/admission"
	"github.com/periplus/periplus/apiserver/admission/admissiontest"
	"github.com/periplus/periplus/apiserver/admission/podnodeselector"
)

func TestPodNodeSelector(t *testing.T) {
	t.Parallel()
	namespace := func(name, selector string) *corev1.Namespace {
		n := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
		if selector != "" {
			n.Annotations = map[string]string{"scheduler.alpha.kubernetes.io/node-selector": selector}
		}
		return n
	}
	p, err := podnodeselector.New(admissiontest.Objects{"namespaces": {namespace("plain", ""), namespace("east", "zone=east"), namespace("narrow", "zone=east")}},
		[]byte("podNodeSelectorPluginConfig: {clusterDefaultNodeSelector: kind=general, narrow: \"zone=east,disk=ssd\"}"))
	if err != nil {
		t.Fatal(err)
	}
	in := func(namespace string, selector map[string]string) admission.Attributes {
		return admission.Attributes{Operation: admission.Create, Resource: corev1.SchemeGroupVersion.WithResource("pods"), Namespace: namespace,
			Object: &corev1.Pod{Spec: corev1.PodSpec{NodeSelector: selector}}}
	}
	selects := func(want map[string]string) func(*testing.T, *admission.Attributes) {
		return func(t *testing.T, a *admission.Attributes) {
			if got := a.Object.(*corev1.Pod).Spec.NodeSelector; !maps.Equal(got, want) {
				t.Errorf("%v, want %v", got, want)
			}
		}
	}
	admissiontest.Run(t, p, map[string]admissiontest.Case{
		"of the cluster":   {Attributes: in("plain", nil), After: selects(map[string]string{"kind": "general"})},
		"of the namespace": {Attributes: in("east", map[string]string{"disk": "ssd"}), After: selects(map[string]string{"zone": "east", "disk": "ssd"})},
		"conflict":         {Attributes: in("east", map[string]string{"zone": "west"}), Want: "pod node label selector conflicts with its namespace node label selector"},
		"within":           {Attributes: in("narrow", map[string]string{"disk": "ssd"})},
		"beyond":           {Attributes: in("narrow", map[string]string{"gpu": "yes"}), Want: "pod node label selector labels conflict with its namespace whitelist"},
		"nowhere":          {Attributes: in("nowhere", nil), Want: "not found"},
	})
}
