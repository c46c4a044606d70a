package affinity_test

import (
	"fmt"
	"log/slog"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/periplus/periplus/kubelet/affinity"
	"github.com/periplus/periplus/linux/numa"
)

// two sockets, each a NUMA node of 8 GiB with two cores of two threads: 0,1 4,5 | 2,3 6,7.
func machine() numa.Machine {
	m := numa.Machine{Nodes: []numa.Node{{ID: 0, Memory: 8 << 30}, {ID: 1, Memory: 8 << 30}}}
	for i := range 8 {
		core := i % 4
		m.CPUs = append(m.CPUs, numa.CPU{ID: i, Core: core, Socket: core / 2, Node: core / 2})
	}
	return m
}

type rig struct {
	*affinity.Assigner
	changes int
}

func assigner(t *testing.T, dir string, p affinity.Policies, devices map[string][][]int) *rig {
	t.Helper()
	r := &rig{}
	a, err := affinity.New(affinity.Config{
		Policies: p, Machine: machine(), ReservedMilliCPU: 500, ReservedMemory: 1 << 30, Dir: dir, Log: slog.New(slog.DiscardHandler),
		Changed: func() { r.changes++ },
		Devices: func(name string) ([][]int, bool) { n, ok := devices[name]; return n, ok },
	})
	if err != nil {
		t.Fatal(err)
	}
	r.Assigner = a
	return r
}

func pod(name, cpu, memory, gpus string) *corev1.Pod {
	list := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse(memory)}
	limits := list.DeepCopy()
	if gpus != "" {
		limits["example.com/gpu"] = resource.MustParse(gpus)
	}
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name)}, Spec: corev1.PodSpec{
		Containers: []corev1.Container{{Name: "c", Resources: corev1.ResourceRequirements{Requests: list, Limits: limits}}}}}
}

func policies(topology string) affinity.Policies {
	p := affinity.DefaultPolicies()
	p.CPU, p.Memory, p.Topology = affinity.Static, affinity.MemoryStatic, topology
	return p
}

func TestStaticCPUs(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	p := affinity.DefaultPolicies()
	p.CPU = affinity.Static
	a := assigner(t, dir, p, nil)
	admit := func(p *corev1.Pod, class corev1.PodQOSClass, want string) {
		t.Helper()
		if err := a.Admit(p, class); fmt.Sprint(err) != "<nil>" {
			if want != "error: "+err.Error() {
				t.Errorf("%s: %v", p.Name, err)
			}
			return
		}
		if got := a.Of(p.UID, "c").CPUs; got != want {
			t.Errorf("%s: %s, want %s", p.Name, got, want)
		}
	}
	admit(pod("burstable", "2", "1Gi", ""), corev1.PodQOSBurstable, "0-7")
	admit(pod("half", "1500m", "1Gi", ""), corev1.PodQOSGuaranteed, "0-7")
	admit(pod("socket", "4", "1Gi", ""), corev1.PodQOSGuaranteed, "2-3,6-7") // the one that is whole: 0 is reserved
	admit(pod("core", "2", "1Gi", ""), corev1.PodQOSGuaranteed, "1,5")
	admit(pod("two", "2", "1Gi", ""), corev1.PodQOSGuaranteed, "error: not enough cpus available to satisfy request: requested=2, available=1")
	if got := a.Of("burstable", "c").CPUs; got != "0,4" || a.changes != 2 {
		t.Errorf("shared: %s after %d changes", got, a.changes)
	}
	a = assigner(t, dir, p, nil) // another life
	if got := a.Of("socket", "c").CPUs; got != "2-3,6-7" || !a.Exclusive("socket", "c") || a.Exclusive("burstable", "c") {
		t.Errorf("after a restart: %s", got)
	}
	a.Free("socket")
	a.Keep(func(uid types.UID) bool { return uid != "core" })
	if got := a.Of("burstable", "c").CPUs; got != "0-7" {
		t.Errorf("shared at last: %s", got)
	}
	p.CPUOptions = map[string]string{affinity.FullPCPUsOnly: "true"}
	a = assigner(t, t.TempDir(), p, nil)
	admit(pod("odd", "3", "1Gi", ""), corev1.PodQOSGuaranteed, "error: SMT Alignment Error: requested 3 cpus not multiple cpus per core = 2")
}

func TestTopology(t *testing.T) {
	t.Parallel()
	gpus := map[string][][]int{"example.com/gpu": {{1}, {1}, {0}}}
	for _, c := range []struct {
		topology          string
		cpu, memory, gpus string
		cpus, mems        string // or the error in cpus
	}{
		{affinity.SingleNUMANode, "2", "1Gi", "2", "2,6", "1"},
		{affinity.SingleNUMANode, "2", "1Gi", "3", affinity.ErrLocality.Error(), ""},
		{affinity.SingleNUMANode, "2", "9Gi", "", affinity.ErrLocality.Error(), ""},
		{affinity.Restricted, "2", "9Gi", "", "1,5", "0,1"}, // so much memory is on two at least
		{affinity.Restricted, "6", "9Gi", "3", "1-3,5-7", "0,1"},
		{affinity.BestEffort, "2", "9Gi", "", "1,5", "0,1"},
		{affinity.BestEffort, "2", "1Gi", "", "1,5", "0"},
	} {
		a := assigner(t, t.TempDir(), policies(c.topology), gpus)
		err := a.Admit(pod("p", c.cpu, c.memory, c.gpus), corev1.PodQOSGuaranteed)
		if err != nil {
			if err.Error() != c.cpus {
				t.Errorf("%+v: %v", c, err)
			}
			continue
		}
		if got := a.Of("p", "c"); got.CPUs != c.cpus || got.Memory != c.mems {
			t.Errorf("%+v: %+v", c, got)
		}
	}
}

func TestPodScope(t *testing.T) {
	t.Parallel()
	p := policies(affinity.SingleNUMANode)
	p.Scope = affinity.ScopePod
	a := assigner(t, t.TempDir(), p, nil)
	two := pod("two", "2", "1Gi", "")
	other := two.Spec.Containers[0]
	other.Name = "d"
	two.Spec.Containers = append(two.Spec.Containers, other)
	if err := a.Admit(two, corev1.PodQOSGuaranteed); err != nil {
		t.Fatal(err)
	}
	if c, d := a.Of("two", "c"), a.Of("two", "d"); c.CPUs != "2,6" || d.CPUs != "3,7" || c.Memory != "1" || d.Memory != "1" {
		t.Errorf("%+v, %+v", c, d)
	}
	if place := a.Place("two", "d"); fmt.Sprint(place) != "[1]" {
		t.Errorf("place %v", place)
	}
}

func TestPolicies(t *testing.T) {
	t.Parallel()
	ok := policies(affinity.Restricted)
	if err := ok.Validate(100); err != nil || !ok.On() || affinity.DefaultPolicies().On() {
		t.Error(err)
	}
	if ok.Validate(0) == nil {
		t.Error("static without a reservation is allowed")
	}
	for _, f := range []func(*affinity.Policies){
		func(p *affinity.Policies) { p.CPU = "dynamic" },
		func(p *affinity.Policies) { p.Memory = "static" },
		func(p *affinity.Policies) { p.Topology = "near" },
		func(p *affinity.Policies) { p.Scope = "node" },
		func(p *affinity.Policies) { p.ReservedCPUs = "a-b" },
		func(p *affinity.Policies) { p.CPUOptions = map[string]string{"x": "true"} },
	} {
		p := policies(affinity.Restricted)
		f(&p)
		if p.Validate(100) == nil {
			t.Errorf("%+v is allowed", p)
		}
	}
}
