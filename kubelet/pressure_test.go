package kubelet_test

import (
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/periplus/periplus/kubelet"
	"github.com/periplus/periplus/kubelet/eviction"
)

// underPressure lets a test say how much memory is left.
func underPressure(r *rig) (left *atomic.Int64) {
	left = &atomic.Int64{}
	left.Store(2 << 30)
	r.more = func(c *kubelet.Config) {
		c.Eviction = &eviction.Config{Hard: map[string]string{"memory.available": "100Mi"}, TransitionPeriod: 5 * time.Minute}
		c.Observe = func() eviction.Observations {
			return eviction.Observations{eviction.MemoryAvailable: {Available: *resource.NewQuantity(left.Load(), resource.BinarySI), Capacity: resource.MustParse("4Gi")}}
		}
	}
	return left
}

func (r *rig) nodeCondition(kind corev1.NodeConditionType) corev1.NodeCondition {
	r.t.Helper()
	node, err := r.client.CoreV1().Nodes().Get(r.t.Context(), "n1", metav1.GetOptions{})
	if err != nil {
		r.t.Fatal(err)
	}
	for _, c := range node.Status.Conditions {
		if c.Type == kind {
			return c
		}
	}
	return corev1.NodeCondition{}
}

func TestPodIsEvictedWhenMemoryRunsOut(t *testing.T) {
	bubble(t, func(r *rig) {
		left := underPressure(r)
		r.start()
		important := int32(1000)
		p := pod("important", app("web"))
		p.Spec.Priority = &important
		r.create(p)
		r.create(pod("other", app("web")))
		r.advance(20 * time.Second)
		if s := r.get("other").Status; s.Phase != corev1.PodRunning {
			t.Fatalf("%+v", s)
		}
		r.eventTexts()

		left.Store(50 << 20)
		r.advance(15 * time.Second)
		st := r.get("other").Status
		want := "The node was low on resource: memory. Threshold quantity: 100Mi, available: 50Mi. "
		if st.Phase != corev1.PodFailed || st.Reason != "Evicted" || st.Message != want {
			t.Errorf("phase %s, reason %s, message %q", st.Phase, st.Reason, st.Message)
		}
		if condition(r.get("other"), corev1.DisruptionTarget) != corev1.ConditionTrue {
			t.Errorf("conditions %+v", st.Conditions)
		}
		if st := r.get("important").Status; st.Phase != corev1.PodRunning {
			t.Errorf("the important pod: %+v", st)
		}
		if c := r.nodeCondition(corev1.NodeMemoryPressure); c.Status != corev1.ConditionTrue || c.Reason != "KubeletHasInsufficientMemory" || c.Message != "kubelet has insufficient memory available" {
			t.Errorf("%+v", c)
		}
		texts := r.eventTexts()
		for _, e := range []string{"Warning EvictionThresholdMet Attempting to reclaim memory", "Normal NodeHasInsufficientMemory Node n1 status is now: NodeHasInsufficientMemory", "Warning Evicted " + want} {
			if !strings.Contains(texts, e) {
				t.Errorf("no event %q in\n%s", e, texts)
			}
		}

		// A pod that comes now and asks for no memory has to stay out.
		left.Store(2 << 30)
		r.create(pod("late", app("web")))
		r.advance(time.Second)
		if st := r.get("late").Status; st.Phase != corev1.PodFailed || st.Reason != "Evicted" || st.Message != "Pod was rejected: The node had condition: [MemoryPressure]. " {
			t.Errorf("late: %s %s %q", st.Phase, st.Reason, st.Message)
		}
		r.advance(5*time.Minute + 15*time.Second)
		if c := r.nodeCondition(corev1.NodeMemoryPressure); c.Status != corev1.ConditionFalse || c.Reason != "KubeletHasSufficientMemory" {
			t.Errorf("after the transition period: %+v", c)
		}
		if st := r.get("important").Status; st.Phase != corev1.PodRunning {
			t.Errorf("the important pod: %+v", st)
		}
	})
}

func TestDeadContainersGoWhenTheDiskIsFull(t *testing.T) {
	bubble(t, func(r *rig) {
		full := &atomic.Bool{}
		r.more = func(c *kubelet.Config) {
			c.Eviction = &eviction.Config{Hard: map[string]string{"nodefs.available": "10%"}, TransitionPeriod: 5 * time.Minute}
			c.Observe = func() eviction.Observations {
				o := eviction.Observation{Available: resource.MustParse("50"), Capacity: resource.MustParse("100")}
				if all, _ := r.runtime.Containers(); full.Load() && all > 1 {
					o.Available = resource.MustParse("5")
				}
				return eviction.Observations{eviction.NodeFsAvailable: o}
			}
		}
		r.start()
		p := pod("done", app("job"))
		p.Spec.RestartPolicy = corev1.RestartPolicyNever
		r.create(p)
		r.create(pod("stays", app("web")))
		r.runtime.Exit(r.runtime.Running("job"), 0)
		r.settle()
		full.Store(true)
		r.advance(15 * time.Second)
		if all, running := r.runtime.Containers(); all != 1 || running != 1 {
			t.Errorf("%d containers, %d run", all, running)
		}
		if st := r.get("done").Status; st.Phase != corev1.PodSucceeded || st.ContainerStatuses[0].State.Terminated == nil {
			t.Errorf("%+v", st)
		}
		if st := r.get("stays").Status; st.Phase != corev1.PodRunning {
			t.Errorf("%+v", st)
		}
		if c := r.nodeCondition(corev1.NodeDiskPressure); c.Status != corev1.ConditionTrue || c.Message != "kubelet has disk pressure" {
			t.Errorf("%+v", c)
		}
	})
}
