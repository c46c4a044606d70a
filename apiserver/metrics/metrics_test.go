package metrics_test

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	metricsv1beta1 "k8s.io/metrics/pkg/apis/metrics/v1beta1"

	"github.com/periplus/periplus/apiserver/metrics"
	"github.com/periplus/periplus/apiserver/registry"
)

// A cluster is what the API server knows, and its kubelets.
type cluster struct {
	nodes []*corev1.Node
	pods  []*corev1.Pod

	mu     sync.Mutex               // guards the rest
	answer map[string]func() string // by address of the kubelet: its text; nil: it does not answer
	asked  map[string]int
}

func (c *cluster) Get(gvr schema.GroupVersionResource, namespace, name string) (runtime.Object, error) {
	list, _ := c.List(gvr, namespace)
	for _, obj := range list {
		if obj.(metav1.Object).GetName() == name {
			return obj, nil
		}
	}
	return nil, apierrors.NewNotFound(gvr.GroupResource(), name)
}

func (c *cluster) List(gvr schema.GroupVersionResource, namespace string) ([]runtime.Object, error) {
	var out []runtime.Object
	if gvr.Resource == "nodes" {
		for _, n := range c.nodes {
			out = append(out, n)
		}
		return out, nil
	}
	for _, p := range c.pods {
		if namespace == "" || p.Namespace == namespace {
			out = append(out, p)
		}
	}
	return out, nil
}

func (c *cluster) RoundTrip(r *http.Request) (*http.Response, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asked[r.URL.Host]++
	answer := c.answer[r.URL.Host]
	if answer == nil || r.URL.Scheme != "https" || r.URL.Path != "/metrics/resource" {
		return nil, errors.New("no route to host")
	}
	return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(strings.NewReader(answer())), Request: r}, nil
}

func (c *cluster) set(change func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	change()
}

func node(name, address string, ready corev1.ConditionStatus) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"name": name}}, Status: corev1.NodeStatus{
		Addresses:  []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: address}},
		Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: ready}},
	}}
}

func pod(namespace, name, node string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{"app": name}},
		Spec:       corev1.PodSpec{NodeName: node}, Status: corev1.PodStatus{Phase: corev1.PodRunning},
	}
}

// A container uses a share of a processor from its start on.
type container struct {
	pod, name string
	start     time.Time
	share     float64
	memory    int
}

// kubelet answers for a node of which one processor works, with these containers.
func kubelet(start time.Time, list ...container) func() string {
	return func() string {
		var b strings.Builder
		now := time.Now()
		fmt.Fprintf(&b, "# TYPE node_cpu_usage_seconds_total counter\nnode_cpu_usage_seconds_total %g %d\nnode_memory_working_set_bytes 1.048576e+06 %[2]d\n", now.Sub(start).Seconds(), now.UnixMilli())
		for _, c := range list {
			ns, name, _ := strings.Cut(c.pod, "/")
			of := fmt.Sprintf("{container=%q,namespace=%q,pod=%q}", c.name, ns, name)
			fmt.Fprintf(&b, "container_cpu_usage_seconds_total%s %g %d\n", of, now.Sub(c.start).Seconds()*c.share, now.UnixMilli())
			fmt.Fprintf(&b, "container_memory_working_set_bytes%s %d %d\n", of, c.memory, now.UnixMilli())
			fmt.Fprintf(&b, "container_start_time_seconds%s %g\n", of, float64(c.start.UnixMilli())/1000)
		}
		b.WriteString("resource_scrape_error 0\n")
		return b.String()
	}
}

func (c *cluster) serve(t *testing.T) (nodes, pods registry.Live) {
	t.Helper()
	c.asked = map[string]int{}
	list := metrics.Resources(metrics.Config{Objects: c, Transport: c, Log: slog.New(slog.DiscardHandler)})
	return list[0].Live, list[1].Live
}

// text is "name cpu memory window (container cpu …)" a line.
func text(t *testing.T, live registry.Live, namespace, selector string) string {
	t.Helper()
	l, err := labels.Parse(selector)
	if err != nil {
		t.Fatal(err)
	}
	list, err := live.List(t.Context(), namespace, l, fields.Everything())
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, obj := range list {
		switch m := obj.(type) {
		case *metricsv1beta1.NodeMetrics:
			out = append(out, fmt.Sprintf("%s %s %s %s", m.Name, m.Usage.Cpu(), m.Usage.Memory(), m.Window.Duration))
		case *metricsv1beta1.PodMetrics:
			line := m.Name + " " + m.Window.Duration.String()
			for _, c := range m.Containers {
				line += fmt.Sprintf(" (%s %s %s)", c.Name, c.Usage.Cpu(), c.Usage.Memory())
			}
			out = append(out, line)
		}
	}
	return strings.Join(out, "\n")
}

func want(t *testing.T, what, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("%s:\n%s\nwant\n%s", what, got, want)
	}
}

// TestFigures asks now and then.
func TestFigures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now().Add(-time.Hour)
		c := &cluster{
			nodes: []*corev1.Node{node("n1", "10.0.0.1", corev1.ConditionTrue), node("n2", "10.0.0.2", corev1.ConditionTrue), node("n3", "10.0.0.3", corev1.ConditionUnknown)},
			pods:  []*corev1.Pod{pod("a", "db", "n2"), pod("a", "web", "n1"), pod("b", "other", "n1"), pod("b", "waits", "")},
		}
		c.answer = map[string]func() string{
			"10.0.0.1:10250": kubelet(start, container{"a/web", "app", start, 0.25, 1 << 20}, container{"a/web", "log", start, 0.001, 3 << 10}, container{"b/other", "x", start, 0, 1 << 20}),
			"10.0.0.2:10250": kubelet(start, container{"a/db", "db", start, 0.5, 1 << 30}),
		}
		nodes, pods := c.serve(t)

		// 1. The first answer takes a second, and only the nodes concerned are asked.
		before := time.Now()
		want(t, "one pod", text(t, pods, "a", "app=web"), "web 1s (app 250m 1Mi) (log 1m 3Ki)")
		if took := time.Since(before); took != time.Second || c.asked["10.0.0.2:10250"] != 0 || c.asked["10.0.0.1:10250"] != 2 {
			t.Errorf("took %v, asked %v", took, c.asked)
		}
		// 2. Soon afterwards the same figures are good enough.
		want(t, "the namespace", text(t, pods, "a", ""), "db 1s (db 500m 1Gi)\nweb 1s (app 250m 1Mi) (log 1m 3Ki)")
		if c.asked["10.0.0.1:10250"] != 2 || c.asked["10.0.0.2:10250"] != 2 {
			t.Errorf("asked %v", c.asked)
		}
		// 3. Later the window is the time since then, and nobody waits.
		<-time.After(14 * time.Second)
		before = time.Now()
		want(t, "nodes", text(t, nodes, "", "name!=n2"), "n1 1 1Mi 15s")
		if took := time.Since(before); took != 0 {
			t.Errorf("took %v", took)
		}
		// 4. A kubelet that does not answer is missing with its pods.
		c.set(func() { c.answer["10.0.0.2:10250"] = nil })
		<-time.After(30 * time.Second)
		want(t, "nodes of which one is gone", text(t, nodes, "", ""), "n1 1 1Mi 30s")
		want(t, "its pods", text(t, pods, "a", ""), "web 30s (app 250m 1Mi) (log 1m 3Ki)")
		if _, err := pods.Get(t.Context(), "a", "db"); !apierrors.IsNotFound(err) || err.Error() != `podmetrics.metrics.k8s.io "a/db" not found` {
			t.Error(err)
		}
		if _, err := nodes.Get(t.Context(), "", "n3"); err == nil || err.Error() != `nodemetrics.metrics.k8s.io "n3" not found` {
			t.Error(err)
		}
		if _, err := pods.Get(t.Context(), "a", "none"); err == nil || err.Error() != `pods "none" not found` {
			t.Error(err)
		}
		// 5. After some minutes it begins anew, and in the end all is forgotten: the
		// bubble ends only when no timer is left.
		<-time.After(5 * time.Minute)
		want(t, "anew", text(t, nodes, "", ""), "n1 1 1Mi 1s")
		<-time.After(3 * time.Minute)
	})
}

// TestRestarts has containers that begin between two readings.
func TestRestarts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now().Add(-time.Hour)
		c := &cluster{
			nodes:  []*corev1.Node{node("n1", "10.0.0.1", corev1.ConditionTrue)},
			pods:   []*corev1.Pod{pod("a", "web", "n1"), pod("a", "young", "n1")},
			answer: map[string]func() string{"10.0.0.1:10250": kubelet(start, container{"a/web", "app", start, 0.25, 1})},
		}
		_, pods := c.serve(t)
		want(t, "before", text(t, pods, "a", ""), "web 1s (app 250m 1)")
		<-time.After(10 * time.Second)
		again, young := time.Now(), time.Now().Add(9500*time.Millisecond)
		<-time.After(10 * time.Second)
		c.set(func() {
			c.answer["10.0.0.1:10250"] = kubelet(start, container{"a/web", "app", again, 0.5, 1}, container{"a/young", "app", young, 1, 1})
		})
		want(t, "the one has run for ten seconds, the other for too short a time", text(t, pods, "a", ""), "web 10s (app 500m 1)")
		// The API server knows that it has begun: now it is waited for.
		c.pods[1].Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "app", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(young)}}}}
		want(t, "another reading", text(t, pods, "a", ""), "web 1s (app 500m 1)\nyoung 1s (app 1 1)")
		<-time.After(20 * time.Second)
		want(t, "both", text(t, pods, "a", ""), "web 20s (app 500m 1)\nyoung 20s (app 1 1)")
		<-time.After(3 * time.Minute)
	})
}

// TestManyAskAtOnce lets a hundred ask for the same: one waits for the kubelet, all get the answer.
func TestManyAskAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &cluster{
			nodes:  []*corev1.Node{node("n1", "10.0.0.1", corev1.ConditionTrue)},
			answer: map[string]func() string{"10.0.0.1:10250": kubelet(time.Now())},
		}
		nodes, _ := c.serve(t)
		var group sync.WaitGroup
		for range 100 {
			group.Go(func() { want(t, "nodes", text(t, nodes, "", ""), "n1 1 1Mi 1s") })
		}
		group.Wait()
		if c.asked["10.0.0.1:10250"] != 2 {
			t.Errorf("asked %v", c.asked)
		}
		<-time.After(3 * time.Minute)
	})
}
