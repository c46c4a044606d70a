package scheduler

import (
	"fmt"
	"math/rand/v2"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

func cacheNode(name, zone string, cpu int64) *v1.Node {
	return &v1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{v1.LabelTopologyZone: zone}},
		Status: v1.NodeStatus{Allocatable: v1.ResourceList{
			v1.ResourceCPU: *resource.NewQuantity(cpu, resource.DecimalSI), "example.com/gpu": resource.MustParse("4"),
		}},
	}
}

func cachePod(name, node string, milli int64) *v1.Pod {
	p := pod(name, 0).Pod
	p.Spec.NodeName = node
	p.Labels = map[string]string{"app": name[:2], "size": fmt.Sprint(milli % 2)}
	p.Spec.Containers = []v1.Container{{
		Ports: []v1.ContainerPort{{HostPort: int32(milli)}},
		Resources: v1.ResourceRequirements{Requests: v1.ResourceList{
			v1.ResourceCPU: *resource.NewMilliQuantity(milli, resource.DecimalSI), "example.com/gpu": resource.MustParse("1"),
		}},
	}}
	return p
}

// TestCacheAgainstRebuild makes random changes and compares each snapshot, which was
// updated incrementally, with one made from nothing. Older versions must not change.
func TestCacheAgainstRebuild(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	table := NewResourceTable()
	c, s := NewCache(table), &Snapshot{}
	nodes, pods := map[string]*v1.Node{}, map[string]*v1.Pod{}
	var kept []*NodeInfo
	var keptSums []string
	sums := func(n *NodeInfo) string {
		return fmt.Sprint(n.Node.Name, n.Requested, n.NonZero, n.Allocatable, len(n.Pods), n.Ports)
	}
	for step := range 3000 {
		node := fmt.Sprint("n", random.IntN(12))
		name := fmt.Sprint("p", random.IntN(60))
		switch random.IntN(8) {
		case 0:
			nodes[node] = cacheNode(node, fmt.Sprint("z", random.IntN(3)), int64(1+random.IntN(8)))
			c.SetNode(nodes[node])
		case 1:
			if n := nodes[node]; n != nil && random.IntN(4) == 0 {
				c.RemoveNode(n)
				delete(nodes, node)
			}
		case 2, 3:
			if p := pods[name]; p != nil {
				c.RemovePod(p.UID)
				delete(pods, name)
			}
		case 4: // a resize or an unchanged update
			if p := pods[name]; p != nil {
				q := cachePod(name, p.Spec.NodeName, p.Spec.Containers[0].Resources.Requests.Cpu().MilliValue()+int64(random.IntN(2)))
				pods[name] = q
				c.SetPod(q)
			}
		default:
			if pods[name] != nil {
				continue
			}
			p := cachePod(name, node, int64(1+random.IntN(500)))
			pods[name] = p
			if random.IntN(2) == 0 {
				if err := c.Assume(NewPodInfo(p, table)); err != nil {
					t.Fatal(err)
				}
				if random.IntN(4) == 0 {
					if !c.Forget(p.UID) {
						t.Fatalf("step %d: Forget did not know an assumed pod", step)
					}
					delete(pods, name)
					continue
				}
			}
			c.SetPod(p)
		}
		if random.IntN(3) != 0 {
			continue
		}
		c.Update(s)
		if len(s.Nodes) != len(nodes) {
			t.Fatalf("step %d: %d nodes, want %d", step, len(s.Nodes), len(nodes))
		}
		for i, n := range s.Nodes {
			if n.Index != i || s.Get(n.Node.Name) != n {
				t.Fatalf("step %d: node %s has index %d at %d", step, n.Node.Name, n.Index, i)
			}
			want := NewNodeInfo(nodes[n.Node.Name], table)
			for _, p := range pods {
				if p.Spec.NodeName == n.Node.Name {
					want.AddPod(NewPodInfo(p, table))
				}
			}
			if !n.Requested.Equal(&want.Requested) || !n.NonZero.Equal(&want.NonZero) || !n.Allocatable.Equal(&want.Allocatable) ||
				len(n.Pods) != len(want.Pods) || len(n.Ports) != len(want.Ports) {
				t.Fatalf("step %d:\n got %s\nwant %s", step, sums(n), sums(want))
			}
		}
		perNode := map[string]int{}
		for _, class := range s.Classes {
			if class.total <= 0 {
				t.Fatalf("step %d: class %q has %d pods", step, class.key, class.total)
			}
			class.Nodes(s, func(n *NodeInfo, pods int) { perNode[n.Node.Name] += pods })
		}
		for _, n := range s.Nodes {
			if perNode[n.Node.Name] != len(n.Pods) {
				t.Fatalf("step %d: classes have %d pods on %s, the node %d", step, perNode[n.Node.Name], n.Node.Name, len(n.Pods))
			}
		}
		if len(s.Nodes) > 0 {
			n := s.Nodes[random.IntN(len(s.Nodes))]
			kept, keptSums = append(kept, n), append(keptSums, sums(n))
		}
	}
	for i, n := range kept {
		if got := sums(n); got != keptSums[i] {
			t.Fatalf("a NodeInfo of an older snapshot changed:\n got %s\n was %s", got, keptSums[i])
		}
	}
}

func TestSnapshotTakesZonesInTurns(t *testing.T) {
	t.Parallel()
	c, s := NewCache(NewResourceTable()), &Snapshot{}
	for _, n := range []string{"a1", "a2", "a3", "b1", "c1", "c2"} {
		c.SetNode(cacheNode(n, n[:1], 1))
	}
	c.Update(s)
	var order string
	for _, n := range s.Nodes {
		order += n.Node.Name + " "
	}
	if order != "a1 b1 c1 a2 c2 a3 " {
		t.Errorf("order %s", order)
	}
}

func TestRequests(t *testing.T) {
	t.Parallel()
	always := v1.ContainerRestartPolicyAlways
	list := func(cpu, memory string) v1.ResourceRequirements {
		l := v1.ResourceList{}
		if cpu != "" {
			l[v1.ResourceCPU] = resource.MustParse(cpu)
		}
		if memory != "" {
			l[v1.ResourceMemory] = resource.MustParse(memory)
		}
		return v1.ResourceRequirements{Requests: l}
	}
	const mi = 1 << 20
	for _, c := range []struct {
		name                           string
		spec                           v1.PodSpec
		cpu, memory, nonCPU, nonMemory int64
	}{
		{"none", v1.PodSpec{Containers: []v1.Container{{}, {}}}, 0, 0, 200, 400 * mi},
		{"containers add up", v1.PodSpec{Containers: []v1.Container{{Resources: list("1", "1Mi")}, {Resources: list("500m", "")}}},
			1500, mi, 1500, 201 * mi},
		{"an init container counts by the maximum", v1.PodSpec{
			InitContainers: []v1.Container{{Resources: list("2", "1Mi")}, {Resources: list("1", "3Mi")}},
			Containers:     []v1.Container{{Resources: list("1", "2Mi")}}}, 2000, 3 * mi, 2000, 3 * mi},
		{"a sidecar adds to all after it", v1.PodSpec{
			InitContainers: []v1.Container{{Resources: list("1", "1Mi"), RestartPolicy: &always}, {Resources: list("2", "1Mi")}},
			Containers:     []v1.Container{{Resources: list("1", "1Mi")}}}, 3000, 2 * mi, 3000, 2 * mi},
		{"overhead is added", v1.PodSpec{Overhead: v1.ResourceList{v1.ResourceCPU: resource.MustParse("250m")},
			Containers: []v1.Container{{Resources: list("1", "1Mi")}}}, 1250, mi, 1250, mi},
		{"the pod's own requests win", v1.PodSpec{Resources: &v1.ResourceRequirements{Requests: list("4", "").Requests},
			Containers: []v1.Container{{Resources: list("1", "1Mi")}}}, 4000, mi, 4000, mi},
	} {
		requests, nonZero := NewResourceTable().Requests(&v1.Pod{ObjectMeta: metav1.ObjectMeta{UID: types.UID(c.name)}, Spec: c.spec})
		if requests.Base != [3]int64{c.cpu, c.memory} || nonZero.Base != [3]int64{c.nonCPU, c.nonMemory} {
			t.Errorf("%s: %v, non-zero %v", c.name, requests.Base, nonZero.Base)
		}
	}
}
