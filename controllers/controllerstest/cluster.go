package controllerstest

import (
	"context"
	"log/slog"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"

	"github.com/periplus/periplus/controllers"
)

// Cluster is a fake API server with controllers running against it.
type Cluster struct {
	Client    *fake.Clientset
	Informers informers.SharedInformerFactory
	Env       *controllers.Env

	t       testing.TB
	mu      sync.Mutex
	changed chan struct{} // closed and replaced at every change; guarded by mu
	events  []string      // "Reason: message"; guarded by mu
}

// Start runs the controllers of list until the test ends. change may adjust the
// environment before.
func Start(t testing.TB, list []controllers.Controller, change func(*controllers.Env), objects ...runtime.Object) *Cluster {
	t.Helper()
	number(t, objects)
	client := fake.NewClientset(objects...)
	c := &Cluster{Client: client, t: t, changed: make(chan struct{})}
	c.Informers = informers.NewSharedInformerFactory(client, 0)
	c.Env = &controllers.Env{
		Client: client, Informers: c.Informers, Log: slog.New(slog.DiscardHandler), Events: recorders{c},
	}
	if change != nil {
		change(c.Env)
	}
	serve(client, len(objects))
	core := c.Informers.Core().V1()
	for _, i := range []cache.SharedIndexInformer{
		core.Pods().Informer(), core.Namespaces().Informer(), core.Nodes().Informer(), core.Endpoints().Informer(),
		core.ServiceAccounts().Informer(), core.ConfigMaps().Informer(),
		c.Informers.Apps().V1().Deployments().Informer(), c.Informers.Apps().V1().ReplicaSets().Informer(),
		c.Informers.Batch().V1().Jobs().Informer(), c.Informers.Batch().V1().CronJobs().Informer(),
		core.PersistentVolumes().Informer(), core.PersistentVolumeClaims().Informer(),
		c.Informers.Storage().V1().StorageClasses().Informer(), c.Informers.Storage().V1().VolumeAttachments().Informer(),
		c.Informers.Storage().V1().CSIDrivers().Informer(),
		c.Informers.Apps().V1().StatefulSets().Informer(), c.Informers.Apps().V1().DaemonSets().Informer(), c.Informers.Apps().V1().ControllerRevisions().Informer(),
		c.Informers.Discovery().V1().EndpointSlices().Informer(), c.Informers.Rbac().V1().ClusterRoles().Informer(),
		c.Informers.Networking().V1().ServiceCIDRs().Informer(),
		c.Informers.Certificates().V1().ClusterTrustBundles().Informer(), c.Informers.Certificates().V1().PodCertificateRequests().Informer(),
	} {
		notify := func() { c.Changed() }
		_, err := i.AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc:    func(any) { notify() },
			UpdateFunc: func(any, any) { notify() },
			DeleteFunc: func(any) { notify() },
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	// The caches are filled before any controller runs, as fake watches lose what
	// happens between their list and their watch.
	c.Informers.StartWithContext(ctx)
	c.Informers.WaitForCacheSyncWithContext(ctx)
	go func() { done <- controllers.Run(ctx, c.Env, list) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("controllers: %v", err)
		}
		c.Informers.Shutdown()
	})
	return c
}

// Changed says that something that a condition may read has changed.
func (c *Cluster) Changed() {
	c.mu.Lock()
	defer c.mu.Unlock()
	close(c.changed)
	c.changed = make(chan struct{})
}

// patience is for how long a wait may see nothing happen that ends it: far longer
// than anything takes, so that a test that hangs fails alone.
const patience = 3 * time.Minute

// Until waits until condition holds; it is tried after every change.
func (c *Cluster) Until(what string, condition func() bool) {
	c.t.Helper()
	// A wait that never ends should say what it waited for.
	stuck := time.AfterFunc(20*time.Second, func() { c.dump(what) })
	defer stuck.Stop()
	never := time.After(patience)
	for {
		c.mu.Lock()
		changed := c.changed
		c.mu.Unlock()
		if condition() {
			return
		}
		select {
		case <-changed:
		case <-c.t.Context().Done():
			c.t.Fatalf("test ended while waiting until %s", what)
		case <-never:
			c.t.Fatalf("it never came that %s", what)
		}
	}
}

// dump shows the state of a wait that seems not to end.
func (c *Cluster) dump(what string) {
	c.t.Logf("still waiting until %s; events: %q", what, c.Events())
	for _, a := range c.Client.Actions() {
		if v := a.GetVerb(); v != "list" && v != "watch" && v != "get" {
			c.t.Logf("%s %s %s", v, a.GetResource().Resource, a.GetSubresource())
		}
	}
}

// Events returns the events recorded so far, each as "Reason: message".
func (c *Cluster) Events() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]string(nil), c.events...)
}

func (c *Cluster) event(text string) {
	c.mu.Lock()
	c.events = append(c.events, text)
	c.mu.Unlock()
	c.Changed()
}

// Pods returns the pods of a namespace as the server has them.
func (c *Cluster) Pods(namespace string) []corev1.Pod {
	list, err := c.Client.CoreV1().Pods(namespace).List(context.Background(), metav1.ListOptions{})
	if err != nil {
		c.t.Fatal(err)
	}
	return list.Items
}

// Kubelet sets the status of every pod that appears, as a kubelet that runs pods
// at once does: Running and Ready. It returns a function that ends it.
func (c *Cluster) Kubelet() (stop func()) {
	informer := c.Informers.Core().V1().Pods().Informer()
	run := func(obj any) {
		pod, ok := obj.(*corev1.Pod)
		if !ok || pod.Status.Phase != "" {
			return
		}
		c.SetPod(pod.Namespace, pod.Name, func(p *corev1.Pod) { Ready(p) })
	}
	registration, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: run})
	if err != nil {
		c.t.Fatal(err)
	}
	return func() { _ = informer.RemoveEventHandler(registration) }
}

// Ready makes a pod Running and Ready now.
func Ready(p *corev1.Pod) {
	p.Status.Phase = corev1.PodRunning
	p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.Now()}}
}

// SetPod changes a pod's status, or says nothing when it is gone.
func (c *Cluster) SetPod(namespace, name string, change func(*corev1.Pod)) {
	ctx := context.Background()
	pod, err := c.Client.CoreV1().Pods(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return
	}
	change(pod)
	_, _ = c.Client.CoreV1().Pods(namespace).UpdateStatus(ctx, pod, metav1.UpdateOptions{})
}

// recorders makes recorders that keep events in the Cluster.
type recorders struct{ c *Cluster }

func (r recorders) NewRecorder(*runtime.Scheme, corev1.EventSource) record.EventRecorderLogger {
	return recorder(r)
}
