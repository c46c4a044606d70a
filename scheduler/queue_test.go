package scheduler

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

var (
	nodeAdd    = ClusterEvent{Node, Add}
	podDeleted = ClusterEvent{AssignedPod, Delete}
)

// testQueue has a plug-in "Fit" that asks for node additions and a plug-in "Ports"
// that asks for pod deletions, when the old object is not "useless".
func testQueue() *Queue {
	hints := []pluginHint{
		{"Fit", EventHint{Event: nodeAdd}},
		{"Ports", EventHint{Event: podDeleted, Worth: func(_ *PodInfo, old, _ any) bool { return old != "useless" }}},
		{"Gates", EventHint{Event: ClusterEvent{PendingPod, UpdatePodGatesEliminated}, Worth: SamePod}},
	}
	return newQueue(queueConfig{
		less: func(a, b *QueuedPod) bool {
			return a.Info.Priority > b.Info.Priority || a.Info.Priority == b.Info.Priority && a.Timestamp.Before(b.Timestamp)
		},
		preEnqueue: func(p *v1.Pod) *Status {
			if len(p.Spec.SchedulingGates) > 0 {
				return NewStatus("Gates", UnschedulableAndUnresolvable, "gated")
			}
			return nil
		},
		hints:   map[string][]pluginHint{"": hints},
		asked:   []ClusterEvent{nodeAdd, podDeleted, {PendingPod, UpdatePodGatesEliminated}},
		initial: time.Second, max: 10 * time.Second,
		onGated: func(*v1.Pod, *Status) {},
	})
}

func pod(name string, priority int32) *PodInfo {
	return &PodInfo{Priority: priority, Pod: &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name)}}}
}

// reject puts a popped pod back as if plug-ins had rejected it.
func (q *Queue) reject(qp *QueuedPod, plugins ...string) {
	qp.Rejectors = plugins
	q.PutBack(qp, qp.Info, false)
}

// popWithin returns the name of the pod that Pop returns, and how long it took.
func (q *Queue) popAfter() (string, time.Duration) {
	start := time.Now()
	qp := q.Pop()
	return qp.Info.Pod.Name, time.Since(start)
}

func TestQueueOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := testQueue()
		defer q.Close()
		for _, p := range []*PodInfo{pod("a", 0), pod("b", 5), pod("c", 0)} {
			q.Add(p)
			time.Sleep(time.Nanosecond) // the fake clock: distinct timestamps
		}
		var got []string
		for range 3 {
			got = append(got, q.Pop().Info.Pod.Name)
		}
		if !slices.Equal(got, []string{"b", "a", "c"}) {
			t.Errorf("order %v", got)
		}
	})
}

func TestQueueEventsMoveOnlyConcernedPods(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := testQueue()
		defer q.Close()
		for _, name := range []string{"fit", "ports", "anything"} {
			q.Add(pod(name, 0))
		}
		for range 3 {
			qp := q.Pop()
			switch qp.Info.Pod.Name {
			case "fit":
				q.reject(qp, "Fit")
			case "ports":
				q.reject(qp, "Ports")
			default:
				q.reject(qp)
			}
		}
		state := func(want string) {
			t.Helper()
			var names []string
			for _, qp := range q.waiting {
				names = append(names, qp.Info.Pod.Name)
			}
			slices.Sort(names)
			if got := strings.Join(names, " "); got != want {
				t.Errorf("waiting: %q, want %q", got, want)
			}
		}
		q.Event(ClusterEvent{Node, UpdateNodeLabel}, nil, nil) // nobody asked
		state("anything fit ports")
		q.Event(podDeleted, "useless", nil)
		state("fit ports") // a pod that nobody knows why it waits is moved by any event
		q.Event(podDeleted, "useful", nil)
		state("fit")
		q.Event(nodeAdd, nil, nil)
		state("")
	})
}

// TestQueueBackoff: after an error a pod returns after 1, 2, 4, 8, 10, 10 seconds without any event.
func TestQueueBackoff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := testQueue()
		defer q.Close()
		q.Add(pod("a", 0))
		qp := q.Pop()
		for _, want := range []time.Duration{1, 2, 4, 8, 10, 10} {
			q.PutBack(qp, qp.Info, true)
			start := time.Now()
			qp = q.Pop()
			if got := time.Since(start); got != want*time.Second {
				t.Errorf("back-off %v, want %v s", got, want)
			}
		}
	})
}

// TestQueueBackoffIsSkippedWhenIdle: a rejected pod that an event brings back is
// popped before its back-off ends, unless others are there.
func TestQueueBackoffIsSkippedWhenIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := testQueue()
		defer q.Close()
		q.Add(pod("a", 0))
		q.reject(q.Pop(), "Fit")
		q.Event(nodeAdd, nil, nil)
		if _, backoff, _ := q.Counts(); backoff != 1 {
			t.Fatalf("%d pods in back-off, want 1", backoff)
		}
		q.Add(pod("b", -1))
		if name, d := q.popAfter(); name != "b" || d != 0 {
			t.Errorf("popped %s after %v, want b at once", name, d)
		}
		if name, d := q.popAfter(); name != "a" || d != 0 {
			t.Errorf("popped %s after %v, want a at once", name, d)
		}
	})
}

// TestQueueEventDuringCycle: an event that arrives while the pod is being scheduled is not lost.
func TestQueueEventDuringCycle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := testQueue()
		defer q.Close()
		q.Add(pod("a", 0))
		qp := q.Pop()
		q.Event(nodeAdd, nil, nil)
		q.reject(qp, "Fit")
		if name, d := q.popAfter(); name != "a" || d != 0 {
			t.Errorf("popped %s after %v, want a at once", name, d)
		}
		if n := q.flight.order.Len(); n != 1 {
			t.Errorf("%d entries in flight, want the mark alone", n)
		}
	})
}

// TestQueueLeftover: without any event a rejected pod is tried again after five minutes.
func TestQueueLeftover(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := testQueue()
		defer q.Close()
		q.Add(pod("a", 0))
		q.reject(q.Pop(), "Fit")
		if name, d := q.popAfter(); name != "a" || d != leftoverAfter {
			t.Errorf("popped %s after %v, want a after %v", name, d, leftoverAfter)
		}
	})
}

func TestQueueGate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := testQueue()
		defer q.Close()
		gated := pod("a", 0)
		gated.Pod.Spec.SchedulingGates = []v1.PodSchedulingGate{{Name: "g"}}
		q.Add(gated)
		q.Event(nodeAdd, nil, nil)
		if active, backoff, waiting := q.Counts(); active+backoff != 0 || waiting != 1 {
			t.Fatalf("counts %d %d %d: a gated pod must wait", active, backoff, waiting)
		}
		q.Update(gated.Pod, pod("a", 0), UpdatePodGatesEliminated)
		if name, d := q.popAfter(); name != "a" || d != 0 {
			t.Errorf("popped %s after %v, want a at once", name, d)
		}
	})
}

func TestQueueDelete(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := testQueue()
		for _, name := range []string{"a", "b", "c"} {
			q.Add(pod(name, 0))
		}
		qp := q.Pop()
		q.reject(qp, "Fit")
		qp = q.Pop()
		q.PutBack(qp, qp.Info, true)
		for _, name := range []string{"a", "b", "c"} {
			q.Delete(types.UID(name))
		}
		if active, backoff, waiting := q.Counts(); active+backoff+waiting != 0 {
			t.Errorf("counts %d %d %d after all were deleted", active, backoff, waiting)
		}
		for plugin, n := range q.rejectedBy {
			if n != 0 {
				t.Errorf("%d waiting pods of %q are still counted", n, plugin)
			}
		}
		q.Close()
		if qp := q.Pop(); qp != nil {
			t.Errorf("Pop after Close returned %s", qp.Info.Pod.Name)
		}
	})
}
