package scheduler_test

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/periplus/periplus/scheduler"
	"github.com/periplus/periplus/scheduler/all"
	st "github.com/periplus/periplus/scheduler/schedulertest"
)

// binder confirms each binding as the informer would, and counts.
type binder struct {
	sched *scheduler.Scheduler
	pods  map[string]*v1.Pod
	left  atomic.Int64
	done  chan struct{}
}

func (*binder) Name() string { return "Binder" }
func (b *binder) Bind(_ context.Context, _ *scheduler.CycleState, p *scheduler.PodInfo, node string) *scheduler.Status {
	bound := *b.pods[p.Pod.Name]
	bound.Spec.NodeName = node
	bound.ResourceVersion = "2"
	b.sched.UpdatePod(b.pods[p.Pod.Name], &bound)
	if b.left.Add(-1) == 0 {
		close(b.done)
	}
	return nil
}

// BenchmarkSchedule measures pods/s of the whole scheduler with a binder that answers at once.
func BenchmarkSchedule(b *testing.B) {
	const nodes, pods = 5000, 10000
	for _, c := range []struct {
		name string
		pod  func(i int) *v1.Pod
	}{
		{"equal", func(i int) *v1.Pod { return st.Pod(fmt.Sprint("p", i), "cpu", "100m", "memory", "100Mi") }},
		{"mixed", func(i int) *v1.Pod {
			return st.Pod(fmt.Sprint("p", i), "cpu", fmt.Sprint(50+i%7*10, "m"), "memory", fmt.Sprint(100+i%11*10, "Mi"))
		}},
		{"nodeaffinity", func(i int) *v1.Pod {
			return st.With(st.Pod(fmt.Sprint("p", i), "cpu", fmt.Sprint(50+i%7*10, "m"), "memory", "100Mi"), func(p *v1.Pod) {
				p.Spec.NodeSelector = map[string]string{v1.LabelTopologyZone: fmt.Sprint("zone", i%3)}
			})
		}},
		{"antiaffinity", func(i int) *v1.Pod {
			return st.With(st.Pod(fmt.Sprint("p", i), "cpu", "100m", "memory", "100Mi"), func(p *v1.Pod) {
				p.Labels = map[string]string{"app": fmt.Sprint(i % 100)}
				p.Spec.Affinity = &v1.Affinity{PodAntiAffinity: &v1.PodAntiAffinity{
					RequiredDuringSchedulingIgnoredDuringExecution: []v1.PodAffinityTerm{{
						LabelSelector: &metav1.LabelSelector{MatchLabels: p.Labels}, TopologyKey: v1.LabelHostname}}}}
			})
		}},
		{"spread", func(i int) *v1.Pod {
			return st.With(st.Pod(fmt.Sprint("p", i), "cpu", "100m", "memory", "100Mi"), func(p *v1.Pod) {
				p.Labels = map[string]string{"app": fmt.Sprint(i % 100)}
				p.Spec.TopologySpreadConstraints = []v1.TopologySpreadConstraint{{MaxSkew: 1, TopologyKey: v1.LabelTopologyZone,
					WhenUnsatisfiable: v1.DoNotSchedule, LabelSelector: &metav1.LabelSelector{MatchLabels: p.Labels}}}
			})
		}},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for range b.N {
				b.StopTimer()
				run := prepare(b, nodes, pods, c.pod)
				b.StartTimer()
				run()
			}
			b.ReportMetric(float64(pods*b.N)/b.Elapsed().Seconds(), "pods/s")
		})
	}
}

func prepare(b *testing.B, nodes, pods int, pod func(int) *v1.Pod) func() {
	bind := &binder{pods: make(map[string]*v1.Pod, pods), done: make(chan struct{})}
	bind.left.Store(int64(pods))
	plugins := all.Plugins()
	plugins[len(plugins)-1] = scheduler.Use{New: func(*scheduler.Framework) (scheduler.Plugin, error) { return bind, nil }}
	client := fake.NewClientset()
	factory := informers.NewSharedInformerFactory(client, 0)
	s, err := scheduler.New(scheduler.Config{
		Client: client, Informers: factory,
		Profiles: []scheduler.Profile{{SchedulerName: scheduler.DefaultName, Plugins: plugins}},
	})
	if err != nil {
		b.Fatal(err)
	}
	bind.sched = s
	for i := range nodes {
		n := st.Node(fmt.Sprint("n", i), "cpu", "4", "memory", "32Gi")
		n.Labels[v1.LabelTopologyZone] = fmt.Sprint("zone", i%3)
		s.AddNode(n)
	}
	var list []*v1.Pod
	for i := range pods {
		p := pod(i)
		bind.pods[p.Name] = p
		list = append(list, p)
	}
	list = slices.Clip(list)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	b.Cleanup(func() {
		cancel()
		<-ended //nolint:errcheck // it was cancelled
		factory.Shutdown()
	})
	return func() {
		for _, p := range list {
			s.AddPod(p)
		}
		<-bind.done
	}
}

// BenchmarkOnePod is the time from the informer's call to the binder's for a single
// pod on an idle cluster of 5,000 nodes.
func BenchmarkOnePod(b *testing.B) {
	for _, nodes := range []int{1, 100, 5000} {
		b.Run(fmt.Sprint(nodes), func(b *testing.B) {
			bound := make(chan struct{}, 1)
			plugins := all.Plugins()
			plugins[len(plugins)-1] = scheduler.Use{New: func(*scheduler.Framework) (scheduler.Plugin, error) { return signal(bound), nil }}
			client := fake.NewClientset()
			factory := informers.NewSharedInformerFactory(client, 0)
			s, err := scheduler.New(scheduler.Config{
				Client: client, Informers: factory,
				Profiles: []scheduler.Profile{{SchedulerName: scheduler.DefaultName, Plugins: plugins}},
			})
			if err != nil {
				b.Fatal(err)
			}
			for i := range nodes {
				s.AddNode(st.Node(fmt.Sprint("n", i), "cpu", "4000", "memory", "32000Gi", "pods", "1000000"))
			}
			ctx, cancel := context.WithCancel(context.Background())
			ended := make(chan error, 1)
			go func() { ended <- s.Run(ctx) }()
			pods := make([]*v1.Pod, b.N)
			for i := range pods {
				pods[i] = st.Pod(fmt.Sprint("p", i), "cpu", "1m", "memory", "1Mi")
			}
			b.ResetTimer()
			for _, p := range pods {
				s.AddPod(p)
				<-bound
			}
			b.StopTimer()
			cancel()
			<-ended //nolint:errcheck // it was cancelled
			factory.Shutdown()
		})
	}
}

type signal chan struct{}

func (signal) Name() string { return "Signal" }
func (c signal) Bind(context.Context, *scheduler.CycleState, *scheduler.PodInfo, string) *scheduler.Status {
	c <- struct{}{}
	return nil
}
