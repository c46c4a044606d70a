package daemonset_test

import (
	"context"
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/periplus/periplus/controllers"
	"github.com/periplus/periplus/controllers/controllerstest"
	"github.com/periplus/periplus/controllers/daemonset"
)

var ctx = context.Background()

type world struct {
	*controllerstest.Cluster
	t *testing.T
}

func node(name string, change ...func(*corev1.Node)) *corev1.Node {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"kubernetes.io/hostname": name}}}
	for _, f := range change {
		f(n)
	}
	return n
}

func taint(key string, effect corev1.TaintEffect) func(*corev1.Node) {
	return func(n *corev1.Node) {
		n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: key, Effect: effect})
	}
}

func set(surge, unavailable int) *appsv1.DaemonSet {
	labels := map[string]string{"app": "agent"}
	s, u := intstr.FromInt(surge), intstr.FromInt(unavailable)
	return &appsv1.DaemonSet{
		ObjectMeta: metav1.ObjectMeta{Name: "agent", Namespace: "default", Generation: 1},
		Spec: appsv1.DaemonSetSpec{
			Selector:       &metav1.LabelSelector{MatchLabels: labels},
			UpdateStrategy: appsv1.DaemonSetUpdateStrategy{Type: appsv1.RollingUpdateDaemonSetStrategyType, RollingUpdate: &appsv1.RollingUpdateDaemonSet{MaxSurge: &s, MaxUnavailable: &u}},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "agent:1"}}},
			},
		},
	}
}

func start(t *testing.T, ds *appsv1.DaemonSet, nodes ...runtime.Object) world {
	t.Helper()
	w := world{controllerstest.Start(t, []controllers.Controller{daemonset.Controller()}, nil, nodes...), t}
	if _, err := w.Client.AppsV1().DaemonSets("default").Create(ctx, ds, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	return w
}

// where lists the nodes that the pods are meant for, with their images.
func (w world) where() (out []string) {
	for _, p := range w.Pods("default") {
		term := p.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms[0]
		out = append(out, term.MatchFields[0].Values[0]+"="+p.Spec.Containers[0].Image)
	}
	slices.Sort(out)
	return out
}

func (w world) get() *appsv1.DaemonSet {
	ds, err := w.Client.AppsV1().DaemonSets("default").Get(ctx, "agent", metav1.GetOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	return ds
}

func (w world) image(name string) {
	w.t.Helper()
	for {
		ds := w.get()
		ds.Spec.Template.Spec.Containers[0].Image = name
		ds.Generation++
		if _, err := w.Client.AppsV1().DaemonSets("default").Update(ctx, ds, metav1.UpdateOptions{}); err == nil {
			return
		}
	}
}

// TestNodes: a pod on each node that fits, whatever becomes of the nodes.
func TestNodes(t *testing.T) {
	t.Parallel()
	w := start(t, set(0, 1), node("a"), node("b", taint("dedicated", corev1.TaintEffectNoSchedule)), node("c", taint(corev1.TaintNodeUnschedulable, corev1.TaintEffectNoSchedule)),
		node("d", taint(corev1.TaintNodeNotReady, corev1.TaintEffectNoExecute)))
	w.Kubelet()
	all := []string{"a=agent:1", "c=agent:1", "d=agent:1"}
	w.Until("a pod is on every node but b", func() bool {
		s := w.get().Status
		return slices.Equal(w.where(), all) && s.DesiredNumberScheduled == 3 && s.NumberReady == 3 && s.NumberAvailable == 3 && s.UpdatedNumberScheduled == 3
	})
	if _, err := w.Client.CoreV1().Nodes().Create(ctx, node("e"), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	w.Until("one is on the new node", func() bool { return slices.Equal(w.where(), append(slices.Clone(all), "e=agent:1")) })
	if err := w.Client.CoreV1().Pods("default").Delete(ctx, w.Pods("default")[0].Name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	w.Until("it comes back", func() bool { return w.get().Status.NumberReady == 4 && len(w.Pods("default")) == 4 })
	if err := w.Client.CoreV1().Nodes().Delete(ctx, "e", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	w.Until("none is for the node that is gone", func() bool { return slices.Equal(w.where(), all) })
	tainted := node("a", taint("maintenance", corev1.TaintEffectNoExecute))
	if _, err := w.Client.CoreV1().Nodes().Update(ctx, tainted, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	w.Until("the tainted node has none", func() bool { return slices.Equal(w.where(), all[1:]) })
}

// TestReplace updates one node at a time.
func TestReplace(t *testing.T) {
	t.Parallel()
	w := start(t, set(0, 1), node("a"), node("b"))
	stop := w.Kubelet()
	w.Until("two are ready", func() bool { return w.get().Status.NumberReady == 2 })
	stop()
	w.image("agent:2")
	w.Until("one is new", func() bool { return slices.Equal(w.where(), []string{"a=agent:2", "b=agent:1"}) })
	w.Until("its absence is counted", func() bool { return w.get().Status.NumberUnavailable == 1 })
	for _, p := range w.Pods("default") {
		w.SetPod("default", p.Name, controllerstest.Ready)
	}
	w.Kubelet()
	w.Until("both are new", func() bool {
		return slices.Equal(w.where(), []string{"a=agent:2", "b=agent:2"}) && w.get().Status.NumberAvailable == 2
	})
}

// TestSurge has the new pod ready before the old one goes.
func TestSurge(t *testing.T) {
	t.Parallel()
	w := start(t, set(1, 0), node("a"))
	stop := w.Kubelet()
	w.Until("one is ready", func() bool { return w.get().Status.NumberReady == 1 })
	stop()
	w.image("agent:2")
	w.Until("both are there", func() bool { return slices.Equal(w.where(), []string{"a=agent:1", "a=agent:2"}) })
	for _, p := range w.Pods("default") {
		w.SetPod("default", p.Name, controllerstest.Ready)
	}
	w.Until("the new one is alone", func() bool { return slices.Equal(w.where(), []string{"a=agent:2"}) })
}
