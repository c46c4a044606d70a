package nodelifecycle_test

import (
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/periplus/periplus/controllers"
	"github.com/periplus/periplus/controllers/controllerstest"
	"github.com/periplus/periplus/controllers/nodelifecycle"
)

func node(name string, ready corev1.ConditionStatus) *corev1.Node {
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: metav1.Now()},
		Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{
			{Type: corev1.NodeReady, Status: ready, LastHeartbeatTime: metav1.Now(), LastTransitionTime: metav1.Now()}}},
	}
}

// TestDisruptedZone: while more than half of a small zone is not ready nothing is evicted
// there; as soon as enough nodes are back, the others' pods are.
func TestDisruptedZone(t *testing.T) {
	t.Parallel()
	now := metav1.NowMicro()
	var objects []runtime.Object
	for _, name := range []string{"a", "b", "c", "d"} {
		ready := corev1.ConditionFalse
		if name == "a" {
			ready = corev1.ConditionTrue
		}
		objects = append(objects, node(name, ready), &coordinationv1.Lease{
			ObjectMeta: metav1.ObjectMeta{Namespace: corev1.NamespaceNodeLease, Name: name}, Spec: coordinationv1.LeaseSpec{RenewTime: &now}})
	}
	w := controllerstest.Start(t, []controllers.Controller{nodelifecycle.Controller()}, nil, objects...)
	tainted := func(effect corev1.TaintEffect) (n int) {
		nodes, err := w.Client.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for i := range nodes.Items {
			for _, x := range nodes.Items[i].Spec.Taints {
				if x.Key == corev1.TaintNodeNotReady && x.Effect == effect {
					n++
				}
			}
		}
		return n
	}
	w.Until("three nodes are not scheduled to", func() bool { return tainted(corev1.TaintEffectNoSchedule) == 3 })
	if n := tainted(corev1.TaintEffectNoExecute); n > 0 {
		t.Errorf("%d nodes of a disrupted zone are emptied", n)
	}
	b, err := w.Client.CoreV1().Nodes().Get(t.Context(), "b", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	b.Status = node("b", corev1.ConditionTrue).Status
	if _, err := w.Client.CoreV1().Nodes().UpdateStatus(t.Context(), b, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	w.Until("one of the others is emptied", func() bool { return tainted(corev1.TaintEffectNoExecute) > 0 })
}
