package hollow_test

import (
	"context"
	"errors"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	restclient "k8s.io/client-go/rest"

	"github.com/periplus/periplus/apitest"
	"github.com/periplus/periplus/client"
	"github.com/periplus/periplus/hollow"
)

// limit bounds what a test waits for, on however slow a machine.
const limit = 2 * time.Minute

// plane is a control plane that ends with the test.
func plane(t testing.TB) kubernetes.Interface {
	t.Helper()
	e := &apitest.Environment{Controllers: []string{"*"}, Scheduler: true, ServiceAccounts: true}
	config, err := e.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Stop(); err != nil {
			t.Error(err)
		}
	})
	config = restclient.CopyConfig(config)
	fast := client.ServersConfig(nil, "test")
	config.QPS, config.ContentConfig, config.WarningHandler = fast.QPS, fast.ContentConfig, fast.WarningHandler
	c, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// run runs a fleet until stop is called, which returns how it ended.
func run(t testing.TB, cfg hollow.Config) (stop func() error) {
	t.Helper()
	f, err := hollow.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ready, ended := make(chan struct{}), make(chan error, 1)
	go func() { ended <- f.Run(ctx, func() { close(ready) }) }()
	select {
	case <-ready:
	case err := <-ended:
		cancel()
		t.Fatalf("the fleet ended: %v", err)
	}
	return func() error {
		cancel()
		return <-ended
	}
}

func until(t testing.TB, w watch.Interface, err error, done func(watch.Event) bool) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	for e := range w.ResultChan() {
		if done(e) {
			return
		}
	}
	t.Fatal("the watch ended before what it was to show")
}

func deployment(name string, replicas int32) *appsv1.Deployment {
	labels := map[string]string{"app": name}
	return &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: appsv1.DeploymentSpec{
		Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: labels},
		Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}}},
	}}
}

// available waits until a Deployment has as many pods as it wants.
func available(t testing.TB, ctx context.Context, c kubernetes.Interface, name string, replicas int32) {
	t.Helper()
	w, err := c.AppsV1().Deployments("default").Watch(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + name})
	until(t, w, err, func(e watch.Event) bool {
		d, ok := e.Object.(*appsv1.Deployment)
		return ok && d.Status.ObservedGeneration == d.Generation && d.Status.Replicas == replicas && d.Status.AvailableReplicas == replicas
	})
}

func defaults(c kubernetes.Interface, nodes int) hollow.Config {
	cfg := hollow.Defaults()
	cfg.Client, cfg.Nodes = c, nodes
	cfg.Start, cfg.Stop, cfg.JobTime = hollow.Between(0, 20*time.Millisecond), hollow.Fixed(0), hollow.Fixed(0)
	return cfg
}

func TestFleet(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	c := plane(t)
	cfg := defaults(c, 5)
	cfg.Keep = true
	stop := run(t, cfg)

	// 1. Every node has a lease of its own.
	leases := map[string]bool{}
	w, err := c.CoordinationV1().Leases(corev1.NamespaceNodeLease).Watch(ctx, metav1.ListOptions{})
	until(t, w, err, func(e watch.Event) bool {
		leases[e.Object.(metav1.Object).GetName()] = true
		return len(leases) == 5
	})

	// 2. Pods run; a Job is done; what is deleted goes.
	if _, err := c.AppsV1().Deployments("default").Create(ctx, deployment("web", 30), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	available(t, ctx, c, "web", 30)
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "job"}, Spec: batchv1.JobSpec{Template: corev1.PodTemplateSpec{
		Spec: corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: "c", Image: "i"}}},
	}}}
	if _, err := c.BatchV1().Jobs("default").Create(ctx, job, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	w, err = c.BatchV1().Jobs("default").Watch(ctx, metav1.ListOptions{})
	until(t, w, err, func(e watch.Event) bool { j, ok := e.Object.(*batchv1.Job); return ok && j.Status.Succeeded == 1 })
	before := addresses(t, ctx, c)
	if len(before) != 30 {
		t.Errorf("30 pods have %d addresses", len(before))
	}

	// 3. Another process goes on where the first ended, and pods do not notice.
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	cfg.Keep = false
	stop = run(t, cfg)
	scale, err := c.AppsV1().Deployments("default").GetScale(ctx, "web", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	scale.Spec.Replicas = 40
	if _, err := c.AppsV1().Deployments("default").UpdateScale(ctx, "web", scale, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	available(t, ctx, c, "web", 40)
	after := addresses(t, ctx, c)
	for ip, name := range before {
		if after[ip] != name {
			t.Errorf("%s was the address of %s and is that of %q", ip, name, after[ip])
		}
	}
	name := before[first(before)]
	pod, err := c.CoreV1().Pods("default").Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.CoreV1().Pods("default").Delete(ctx, name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	w, err = c.CoreV1().Pods("default").Watch(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + name, ResourceVersion: pod.ResourceVersion})
	until(t, w, err, func(e watch.Event) bool { return e.Type == watch.Deleted })

	// 4. At the end the nodes are gone.
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	nodes, err := c.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil || len(nodes.Items) != 0 {
		t.Errorf("%d nodes are left: %v", len(nodes.Items), err)
	}
}

func first(m map[string]string) string {
	least := ""
	for k := range m {
		if least == "" || k < least {
			least = k
		}
	}
	return least
}

// addresses are the names of the Deployment's pods by their addresses.
func addresses(t testing.TB, ctx context.Context, c kubernetes.Interface) map[string]string {
	t.Helper()
	pods, err := c.CoreV1().Pods("default").List(ctx, metav1.ListOptions{LabelSelector: "app=web"})
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for i := range pods.Items {
		p := &pods.Items[i]
		if s := p.Status.ContainerStatuses; len(s) != 1 || s[0].RestartCount != 0 || s[0].State.Running == nil {
			t.Errorf("pod %s: %+v", p.Name, s)
		}
		out[p.Status.PodIP] = p.Name
	}
	return out
}

func TestOthersNodesAreLeftAlone(t *testing.T) {
	t.Parallel()
	c := plane(t)
	if _, err := c.CoreV1().Nodes().Create(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "hollow-1"}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	f, err := hollow.New(defaults(c, 3))
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Run(t.Context(), func() {}); !errors.Is(err, hollow.ErrTaken) {
		t.Errorf("%v, want %v", err, hollow.ErrTaken)
	}
	if _, err := c.CoreV1().Nodes().Get(t.Context(), "hollow-1", metav1.GetOptions{}); err != nil {
		t.Error(err)
	}
	if _, err := c.CoreV1().Nodes().Get(t.Context(), "hollow-0", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("a node that was registered before the failure: %v", err)
	}
}

// BenchmarkCrowd runs ten thousand pods on a thousand nodes, all in this process.
func BenchmarkCrowd(b *testing.B) {
	const pods = 10_000
	c := plane(b)
	stop := run(b, defaults(c, 1000))
	for b.Loop() {
		ctx, cancel := context.WithTimeout(b.Context(), 10*time.Minute)
		if _, err := c.AppsV1().Deployments("default").Create(ctx, deployment("web", pods), metav1.CreateOptions{}); err != nil {
			b.Fatal(err)
		}
		available(b, ctx, c, "web", pods)
		cancel()
	}
	b.ReportMetric(pods*float64(b.N)/b.Elapsed().Seconds(), "pods/s")
	if err := stop(); err != nil {
		b.Error(err)
	}
}
