package scheduler_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	ktesting "k8s.io/client-go/testing"

	"github.com/periplus/periplus/journey"
	"github.com/periplus/periplus/scheduler"
	"github.com/periplus/periplus/scheduler/all"
	st "github.com/periplus/periplus/scheduler/schedulertest"
)

// A cluster is a scheduler on client-go's fake API server, which binds as the real one does.
type cluster struct {
	*testing.T
	client *fake.Clientset
	sched  *scheduler.Scheduler
	events chan string           // "reason: note"
	bound  chan string           // "pod node"
	status chan *v1.PodCondition // PodScheduled conditions that the scheduler wrote
	spans  *spans
	fails  func(pod string) error // of the next bindings
}

type spans struct {
	mu    sync.Mutex
	steps []string // guarded by mu
}

func (s *spans) Record(sp journey.Span) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.steps = append(s.steps, sp.Name+" "+sp.Step+" "+sp.Node)
}

type recorder chan string

func (r recorder) Eventf(_, _ runtime.Object, _, reason, _, note string, args ...any) {
	r <- reason + ": " + fmt.Sprintf(note, args...)
}

func start(t *testing.T, objects ...runtime.Object) *cluster {
	t.Helper()
	c := &cluster{T: t, client: fake.NewClientset(objects...),
		events: make(chan string, 1000), bound: make(chan string, 1000), status: make(chan *v1.PodCondition, 1000), spans: &spans{}}
	c.client.PrependReactor("create", "pods", c.bind)
	c.client.PrependReactor("patch", "pods", func(a ktesting.Action) (bool, runtime.Object, error) {
		if a.GetSubresource() != "status" {
			return false, nil, nil
		}
		var pod v1.Pod
		patch := a.(ktesting.PatchAction).GetPatch()
		if err := json.Unmarshal(patch, &pod); err != nil {
			return true, nil, err
		}
		if len(pod.Status.Conditions) > 0 {
			c.status <- &pod.Status.Conditions[0]
		}
		return false, nil, nil
	})
	factory := informers.NewSharedInformerFactory(c.client, 0)
	var err error
	c.sched, err = scheduler.New(scheduler.Config{
		Client: c.client, Informers: factory, Recorder: recorder(c.events), Journey: c.spans, Profiles: all.Profiles(),
		InitialBackoff: time.Millisecond,
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- c.sched.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run: %v", err)
		}
		factory.Shutdown()
	})
	return c
}

// bind does what the binding subresource does.
func (c *cluster) bind(a ktesting.Action) (bool, runtime.Object, error) {
	if a.GetSubresource() != "binding" {
		return false, nil, nil
	}
	b := a.(ktesting.CreateAction).GetObject().(*v1.Binding)
	if c.fails != nil {
		if err := c.fails(b.Name); err != nil {
			return true, nil, err
		}
	}
	tracker := c.client.Tracker()
	obj, err := tracker.Get(v1.SchemeGroupVersion.WithResource("pods"), b.Namespace, b.Name)
	if err != nil {
		return true, nil, err
	}
	pod := obj.(*v1.Pod).DeepCopy()
	if pod.Spec.NodeName != "" {
		return true, nil, errors.New("already bound")
	}
	pod.Spec.NodeName = b.Target.Name
	pod.ResourceVersion += "1"
	if err := tracker.Update(v1.SchemeGroupVersion.WithResource("pods"), pod, b.Namespace); err != nil {
		return true, nil, err
	}
	c.bound <- b.Name + " " + b.Target.Name
	return true, b, nil
}

func (c *cluster) create(objects ...runtime.Object) {
	c.Helper()
	for _, o := range objects {
		var err error
		switch o := o.(type) {
		case *v1.Pod:
			_, err = c.client.CoreV1().Pods(o.Namespace).Create(context.Background(), o, metav1.CreateOptions{})
		case *v1.Node:
			_, err = c.client.CoreV1().Nodes().Create(context.Background(), o, metav1.CreateOptions{})
		}
		if err != nil {
			c.Fatal(err)
		}
	}
}

// event returns the next event with the reason.
func (c *cluster) event(reason string) string {
	for e := range c.events {
		if note, ok := strings.CutPrefix(e, reason+": "); ok {
			return note
		}
	}
	return ""
}

func want[T comparable](t testing.TB, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s:\n got %v\nwant %v", what, got, want)
	}
}

func TestPodIsBound(t *testing.T) {
	t.Parallel()
	c := start(t, st.Node("n1"))
	c.create(st.Pod("web", "cpu", "1"))
	want(t, "binding", <-c.bound, "web n1")
	want(t, "event", c.event("Scheduled"), "Successfully assigned default/web to n1")
	a, ok := c.sched.Explain("default", "web")
	if !ok || a.Node != "n1" {
		t.Errorf("Explain = %+v, %v", a, ok)
	}
}

func TestOtherSchedulersPodsAreLeftAlone(t *testing.T) {
	t.Parallel()
	c := start(t, st.Node("n1"))
	c.create(st.With(st.Pod("theirs"), func(p *v1.Pod) { p.Spec.SchedulerName = "other" }), st.Pod("ours"))
	want(t, "binding", <-c.bound, "ours n1")
}

// TestNoNodeFits: the message counts the nodes per reason, and the pod is scheduled as soon as a node arrives.
func TestNoNodeFits(t *testing.T) {
	t.Parallel()
	c := start(t,
		st.Node("n1", "cpu", "1"), st.Node("n2", "cpu", "1"),
		st.With(st.Node("n3"), func(n *v1.Node) {
			n.Spec.Taints = []v1.Taint{{Key: "dedicated", Value: "db", Effect: v1.TaintEffectNoSchedule}}
		}),
		st.On("n1", st.Pod("a", "cpu", "1")), st.On("n2", st.Pod("b", "cpu", "500m")))
	c.create(st.Pod("web", "cpu", "1"))
	message := c.event("FailedScheduling")
	const prefix = "0/3 nodes are available: 1 node(s) had untolerated taint(s), 2 Insufficient cpu."
	if !strings.HasPrefix(message, prefix) {
		t.Errorf("message = %q, want prefix %q", message, prefix)
	}
	condition := <-c.status
	want(t, "condition", condition.Reason, v1.PodReasonUnschedulable)
	want(t, "condition message", condition.Message, message)

	c.create(st.Node("n4"))
	want(t, "binding", <-c.bound, "web n4")
}

func TestNoNodesAtAll(t *testing.T) {
	t.Parallel()
	c := start(t)
	c.create(st.Pod("web"))
	want(t, "event", c.event("FailedScheduling"), "no nodes available to schedule pods")
	c.create(st.Node("n1"))
	want(t, "binding", <-c.bound, "web n1")
}

func TestFreedResourcesBringPodBack(t *testing.T) {
	t.Parallel()
	c := start(t, st.Node("n1", "cpu", "1"), st.On("n1", st.Pod("old", "cpu", "1")))
	c.create(st.Pod("web", "cpu", "1"))
	c.event("FailedScheduling")
	if err := c.client.CoreV1().Pods("default").Delete(context.Background(), "old", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	want(t, "binding", <-c.bound, "web n1")
}

func TestGatedPodWaitsForItsGate(t *testing.T) {
	t.Parallel()
	c := start(t, st.Node("n1"))
	pod := st.With(st.Pod("web"), func(p *v1.Pod) {
		p.Spec.SchedulingGates = []v1.PodSchedulingGate{{Name: "example.com/quota"}}
	})
	c.create(pod)
	condition := <-c.status
	want(t, "reason", condition.Reason, v1.PodReasonSchedulingGated)
	free := pod.DeepCopy()
	free.Spec.SchedulingGates = nil
	free.ResourceVersion = "2"
	if _, err := c.client.CoreV1().Pods("default").Update(context.Background(), free, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	want(t, "binding", <-c.bound, "web n1")
}

// TestFailedBindingIsRetried: a binding that the API server refuses gives the node's
// resources back, and the pod is tried again after its back-off.
func TestFailedBindingIsRetried(t *testing.T) {
	t.Parallel()
	var once sync.Once
	c := start(t)
	c.fails = func(pod string) (err error) {
		if pod == "first" {
			once.Do(func() { err = errors.New("the store is full") })
		}
		return err
	}
	c.create(st.Node("n1", "cpu", "1"), st.Pod("first", "cpu", "1"))
	if m := c.event("FailedScheduling"); !strings.Contains(m, "the store is full") {
		t.Errorf("message = %q", m)
	}
	want(t, "binding", <-c.bound, "first n1")
}

func TestJourney(t *testing.T) {
	t.Parallel()
	c := start(t, st.Node("n1"))
	c.create(st.Pod("web"))
	c.event("Scheduled")
	c.create(st.Pod("next"))
	c.event("Scheduled")
	c.spans.mu.Lock()
	defer c.spans.mu.Unlock()
	want(t, "steps", strings.Join(c.spans.steps[:3], ", "), "web queued , web scheduled: filters+scores n1, web bound n1")
}

func TestSpreadsByLeastAllocated(t *testing.T) {
	t.Parallel()
	const nodes, pods = 10, 100
	c := start(t)
	for i := range nodes {
		c.create(st.Node(fmt.Sprint("n", i)))
	}
	for i := range pods {
		c.create(st.Pod(fmt.Sprint("p", i), "cpu", "100m", "memory", "128Mi"))
	}
	count := map[string]int{}
	for range pods {
		_, node, _ := strings.Cut(<-c.bound, " ")
		count[node]++
	}
	for node, n := range count {
		if n < pods/nodes-2 || n > pods/nodes+2 {
			t.Errorf("%s has %d pods, want about %d", node, n, pods/nodes)
		}
	}
}

// TestPreemption: a pod of higher priority takes the place of one of lower priority.
func TestPreemption(t *testing.T) {
	t.Parallel()
	priority := func(n int32) func(*v1.Pod) { return func(p *v1.Pod) { p.Spec.Priority = &n } }
	c := start(t, st.Node("n1", "cpu", "2"),
		st.On("n1", st.With(st.Pod("low", "cpu", "1"), priority(1))),
		st.On("n1", st.With(st.Pod("middle", "cpu", "1"), priority(5))))
	c.create(st.With(st.Pod("high", "cpu", "1"), priority(10)))
	want(t, "event", c.event("FailedScheduling"), "0/1 nodes are available: 1 Insufficient cpu.")
	want(t, "event", c.event("Preempted"), "Preempted by pod high on node n1")
	want(t, "binding", <-c.bound, "high n1")
	if _, err := c.client.CoreV1().Pods("default").Get(context.Background(), "middle", metav1.GetOptions{}); err != nil {
		t.Errorf("the pod of middle priority is gone: %v", err)
	}
}

func TestPreemptionDoesNotHelp(t *testing.T) {
	t.Parallel()
	c := start(t, st.Node("n1", "cpu", "1"), st.Node("n2", "cpu", "4"), st.On("n2", st.Pod("other", "cpu", "3")))
	c.create(st.Pod("web", "cpu", "2"))
	want(t, "event", c.event("FailedScheduling"),
		"0/2 nodes are available: 2 Insufficient cpu. preemption: 0/2 nodes are available: "+
			"1 No preemption victims found for incoming pod, 1 Preemption is not helpful for scheduling.")
}
