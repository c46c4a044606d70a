package schedulertest

import (
	"context"
	"maps"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/periplus/periplus/scheduler"
)

// Requests returns a resource list from pairs of name and quantity.
func Requests(pairs ...string) v1.ResourceList {
	list := v1.ResourceList{}
	for i := 0; i+1 < len(pairs); i += 2 {
		list[v1.ResourceName(pairs[i])] = resource.MustParse(pairs[i+1])
	}
	return list
}

// Pod returns a pending pod "default/name" with one container of those requests.
func Pod(name string, requests ...string) *v1.Pod {
	return &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID(name), ResourceVersion: "1"},
		Spec: v1.PodSpec{
			SchedulerName: scheduler.DefaultName,
			Containers: []v1.Container{{
				Name: "c", Image: "image", Resources: v1.ResourceRequirements{Requests: Requests(requests...)},
			}},
		},
		Status: v1.PodStatus{Phase: v1.PodPending},
	}
}

// On returns pod bound to the node.
func On(node string, pod *v1.Pod) *v1.Pod {
	pod.Spec.NodeName = node
	return pod
}

// Node returns a node with 4 cores, 8 GiB and room for 110 pods, or what allocatable says instead.
func Node(name string, allocatable ...string) *v1.Node {
	list := Requests("cpu", "4", "memory", "8Gi", "pods", "110")
	maps.Copy(list, Requests(allocatable...))
	return &v1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name), Labels: map[string]string{v1.LabelHostname: name}},
		Status:     v1.NodeStatus{Allocatable: list, Capacity: list},
	}
}

// With returns o after change, to build objects in one expression.
func With[T any](o T, change func(T)) T {
	change(o)
	return o
}

// Framework returns a framework that has just these plug-ins, and those without which
// no profile is complete.
func Framework(t testing.TB, nodes []*v1.Node, pods []*v1.Pod, plugins ...scheduler.Factory) *scheduler.Framework {
	t.Helper()
	p := scheduler.Profile{SchedulerName: scheduler.DefaultName, Plugins: []scheduler.Use{{New: newEnds}}}
	for _, x := range plugins {
		p.Plugins = append(p.Plugins, scheduler.Use{New: x})
	}
	f, err := scheduler.Simulate(p, nodes, pods)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// Result is what plug-ins think of a pod on each node.
type Result struct {
	Rejected string            // of the pod as a whole
	Verdicts map[string]string // of nodes that do not fit: "code: reasons"
	Scores   map[string]int64  // of nodes that fit
}

// Run shows what plug-ins think of a pod.
func Run(t testing.TB, pod *v1.Pod, nodes []*v1.Node, pods []*v1.Pod, plugins ...scheduler.Factory) Result {
	t.Helper()
	trial, err := Framework(t, nodes, pods, plugins...).Try(context.Background(), pod)
	if err != nil {
		t.Fatal(err)
	}
	r := Result{Verdicts: map[string]string{}, Scores: trial.Scores}
	if trial.Rejected != nil {
		r.Rejected = trial.Rejected.Message()
	}
	for node, st := range trial.Verdicts {
		if !st.IsSuccess() {
			r.Verdicts[node] = st.Code().String() + ": " + st.Message()
		}
	}
	return r
}

// ends are the plug-ins that every profile needs.
type ends struct{}

func newEnds(*scheduler.Framework) (scheduler.Plugin, error) { return ends{}, nil }

func (ends) Name() string                        { return "Ends" }
func (ends) Less(a, b *scheduler.QueuedPod) bool { return a.Timestamp.Before(b.Timestamp) }
func (ends) Bind(context.Context, *scheduler.CycleState, *scheduler.PodInfo, string) *scheduler.Status {
	return nil
}
