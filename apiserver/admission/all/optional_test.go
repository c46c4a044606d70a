package all_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/periplus/periplus/apiserver/admission"
	"github.com/periplus/periplus/apiserver/admission/admissiontest"
	"github.com/periplus/periplus/apiserver/admission/alwaysadmit"
	"github.com/periplus/periplus/apiserver/admission/alwaysdeny"
	"github.com/periplus/periplus/apiserver/admission/alwayspullimages"
	"github.com/periplus/periplus/apiserver/admission/denyserviceexternalips"
	"github.com/periplus/periplus/apiserver/admission/extendedresourcetoleration"
	"github.com/periplus/periplus/apiserver/admission/limitpodhardantiaffinitytopology"
	"github.com/periplus/periplus/apiserver/admission/namespaceexists"
	"github.com/periplus/periplus/apiserver/admission/podresizevalidator"
	"github.com/periplus/periplus/apiserver/admission/podtopologylabels"
)

var (
	pods     = corev1.SchemeGroupVersion.WithResource("pods")
	services = corev1.SchemeGroupVersion.WithResource("services")
)

func pod(change func(*corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: "ns"}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}}}
	if change != nil {
		change(p)
	}
	return p
}

func made(obj runtime.Object) admission.Attributes {
	gvr := pods
	if _, ok := obj.(*corev1.Service); ok {
		gvr = services
	}
	return admission.Attributes{Operation: admission.Create, Resource: gvr, Namespace: "ns", Name: "p", Object: obj}
}

func changed(old, obj runtime.Object) admission.Attributes {
	a := made(obj)
	a.Operation, a.Old = admission.Update, old
	return a
}

func podOf(a *admission.Attributes) *corev1.Pod { return a.Object.(*corev1.Pod) }

func TestAlways(t *testing.T) {
	t.Parallel()
	admissiontest.Run(t, alwaysadmit.New(), map[string]admissiontest.Case{"pod": {Attributes: made(pod(nil))}})
	admissiontest.Run(t, alwaysdeny.New(), map[string]admissiontest.Case{"pod": {Attributes: made(pod(nil)), Want: "admission control is denying all modifications"}})
}

func TestAlwaysPullImages(t *testing.T) {
	t.Parallel()
	image := func(name string) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			p.Spec.InitContainers = []corev1.Container{{Image: name, ImagePullPolicy: corev1.PullNever}}
			p.Spec.Volumes = []corev1.Volume{{VolumeSource: corev1.VolumeSource{Image: &corev1.ImageVolumeSource{Reference: "v"}}}}
		}
	}
	policies := func(want corev1.PullPolicy) func(*testing.T, *admission.Attributes) {
		return func(t *testing.T, a *admission.Attributes) {
			t.Helper()
			s := podOf(a).Spec
			if s.InitContainers[0].ImagePullPolicy != want {
				t.Errorf("container: %s", s.InitContainers[0].ImagePullPolicy)
			}
			if p := s.Volumes[0].Image.PullPolicy; want == corev1.PullAlways && p != want {
				t.Errorf("volume: %s", p)
			}
		}
	}
	admissiontest.Run(t, alwayspullimages.New(), map[string]admissiontest.Case{
		"new":       {Attributes: made(pod(image("a"))), After: policies(corev1.PullAlways)},
		"new image": {Attributes: changed(pod(image("a")), pod(image("b"))), After: policies(corev1.PullAlways)},
		"no change": {Attributes: changed(pod(image("a")), pod(image("a"))), After: policies(corev1.PullNever)},
	})
	a := made(pod(image("a")))
	if err := alwayspullimages.New().(admission.Validator).Validate(t.Context(), &a); err == nil {
		t.Error("what others changed back is accepted")
	}
}

func TestLimitPodHardAntiAffinityTopology(t *testing.T) {
	t.Parallel()
	apart := func(key string) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			p.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{TopologyKey: key}}}}
		}
	}
	admissiontest.Run(t, limitpodhardantiaffinitytopology.New(), map[string]admissiontest.Case{
		"none": {Attributes: made(pod(nil))},
		"node": {Attributes: made(pod(apart(corev1.LabelHostname)))},
		"zone": {Attributes: made(pod(apart(corev1.LabelTopologyZone))), Want: "has TopologyKey topology.kubernetes.io/zone but only key kubernetes.io/hostname is allowed"},
	})
}

func TestDenyServiceExternalIPs(t *testing.T) {
	t.Parallel()
	service := func(ips ...string) *corev1.Service {
		return &corev1.Service{Spec: corev1.ServiceSpec{ExternalIPs: ips}}
	}
	const refused = "Use of external IPs is denied by admission control"
	admissiontest.Run(t, denyserviceexternalips.New(), map[string]admissiontest.Case{
		"none":    {Attributes: made(service())},
		"new":     {Attributes: made(service("192.0.2.1")), Want: refused},
		"another": {Attributes: changed(service("192.0.2.1"), service("192.0.2.2")), Want: refused},
		"fewer":   {Attributes: changed(service("192.0.2.1", "192.0.2.2"), service("192.0.2.1"))},
	})
}

func TestExtendedResourceToleration(t *testing.T) {
	t.Parallel()
	gpu := func(p *corev1.Pod) {
		p.Spec.Containers[0].Resources.Requests = corev1.ResourceList{"example.com/gpu": resource.MustParse("1"), "cpu": resource.MustParse("1")}
	}
	admissiontest.Run(t, extendedresourcetoleration.New(), map[string]admissiontest.Case{
		"none": {Attributes: made(pod(nil)), After: func(t *testing.T, a *admission.Attributes) {
			if len(podOf(a).Spec.Tolerations) > 0 {
				t.Error(podOf(a).Spec.Tolerations)
			}
		}},
		"gpu": {Attributes: made(pod(gpu)), After: func(t *testing.T, a *admission.Attributes) {
			if got := podOf(a).Spec.Tolerations; len(got) != 1 || got[0].Key != "example.com/gpu" || got[0].Operator != corev1.TolerationOpExists {
				t.Error(got)
			}
		}},
	})
}

func TestNamespaceExists(t *testing.T) {
	t.Parallel()
	p := namespaceexists.New(admissiontest.Objects{"namespaces": {&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ns"}}}})
	elsewhere := changed(pod(nil), pod(nil))
	elsewhere.Namespace = "nowhere"
	admissiontest.Run(t, p, map[string]admissiontest.Case{
		"there": {Attributes: made(pod(nil))},
		"not":   {Attributes: elsewhere, Want: `namespaces "nowhere" not found`},
	})
}

func TestPodsAndTheirNodes(t *testing.T) {
	t.Parallel()
	objects := admissiontest.Objects{"nodes": {&corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "n", Labels: map[string]string{corev1.LabelTopologyZone: "z", "other": "x"}},
		Status:     corev1.NodeStatus{Allocatable: corev1.ResourceList{"cpu": resource.MustParse("2"), "memory": resource.MustParse("1Gi")}},
	}}}
	bind := made(&corev1.Binding{Target: corev1.ObjectReference{Kind: "Node", Name: "n"}})
	bind.Subresource = "binding"
	labels := func(t *testing.T, a *admission.Attributes) {
		t.Helper()
		if got := a.Object.(metav1.Object).GetLabels(); len(got) != 1 || got[corev1.LabelTopologyZone] != "z" {
			t.Error(got)
		}
	}
	admissiontest.Run(t, podtopologylabels.New(objects), map[string]admissiontest.Case{
		"binding": {Attributes: bind, After: labels},
		"bound": {Attributes: made(pod(func(p *corev1.Pod) {
			p.Spec.NodeName = "n"
			p.Labels = map[string]string{corev1.LabelTopologyZone: "mine"}
		})), After: labels},
		"not bound":   {Attributes: made(pod(nil))},
		"unknown one": {Attributes: made(pod(func(p *corev1.Pod) { p.Spec.NodeName = "none" }))},
	})
	resize := func(generation int64, on, cpu string) admission.Attributes {
		a := changed(pod(nil), pod(func(p *corev1.Pod) {
			p.Spec.NodeName, p.Generation = on, generation
			p.Spec.Containers[0].Resources.Requests = corev1.ResourceList{"cpu": resource.MustParse(cpu)}
		}))
		a.Subresource = "resize"
		return a
	}
	admissiontest.Run(t, podresizevalidator.New(objects), map[string]admissiontest.Case{
		"fits":        {Attributes: resize(1, "n", "2")},
		"too much":    {Attributes: resize(1, "n", "3"), Want: `pods "p" is forbidden: node didn't have enough allocatable resources: cpu, requested: 3000, allocatable: 2000`},
		"no change":   {Attributes: resize(0, "n", "3")},
		"unscheduled": {Attributes: resize(1, "", "3")},
		"lost":        {Attributes: resize(1, "none", "1"), Want: `node "none" not found`},
	})
}
