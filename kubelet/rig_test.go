package kubelet_test

import (
	"context"
	"log/slog"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/record"

	"github.com/periplus/periplus/kubelet"
	"github.com/periplus/periplus/kubelet/kubelettest"
	"github.com/periplus/periplus/kubelet/node"
)

// rig is a kubelet with a runtime in memory and a fake API, inside a synctest bubble.
type rig struct {
	t       *testing.T
	client  *fake.Clientset
	runtime *kubelettest.Runtime
	images  *kubelettest.Images
	events  *record.FakeRecorder
	root    string
	stop    func()
	kubelet *kubelet.Kubelet
	journal journal
	more    func(*kubelet.Config) // changes the configuration
}

// bubble runs f in a synctest bubble with a rig that is not started.
func bubble(t *testing.T, f func(*rig)) {
	t.Helper()
	t.Parallel()
	root := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		r := &rig{t: t, client: fake.NewClientset(), runtime: kubelettest.New(), images: kubelettest.NewImages("web:1"),
			events: record.NewFakeRecorder(1000), root: root, stop: func() {}}
		defer func() { r.stop() }()
		f(r)
	})
}

func (r *rig) start() {
	r.t.Helper()
	factory := informers.NewSharedInformerFactory(r.client, 0)
	pods, nodes := factory.Core().V1().Pods().Informer(), factory.Core().V1().Nodes().Informer()
	config := kubelet.Config{
		NodeName: "n1", Client: r.client, Pods: pods, NodeInformer: nodes,
		Services: factory.Core().V1().Services().Lister(),
		Runtime:  r.runtime, Images: r.images, Events: r.events, Journey: &r.journal,
		Log:     slog.New(slog.DiscardHandler),
		RootDir: filepath.Join(r.root, "kubelet"), LogDir: filepath.Join(r.root, "logs"),
		ClusterDNS: []string{"10.43.0.10"}, ResolvConf: filepath.Join(r.root, "resolv.conf"),
		Node: node.Config{IPs: []net.IP{net.IPv4(192, 0, 2, 7)}, Capacity: corev1.ResourceList{
			corev1.ResourceCPU: resource.MustParse("2"), corev1.ResourceMemory: resource.MustParse("4Gi")}},
	}
	if r.more != nil {
		r.more(&config)
	}
	k, err := kubelet.New(config)
	if err != nil {
		r.t.Fatal(err)
	}
	r.kubelet = k
	ctx, cancel := context.WithCancel(context.Background())
	factory.Start(ctx.Done())
	ended := make(chan error, 1)
	go func() { ended <- k.Run(ctx) }()
	r.stop = func() {
		cancel()
		if err := <-ended; err != nil {
			r.t.Errorf("Run: %v", err)
		}
		factory.Shutdown()
		r.stop = func() {}
	}
	r.settle()
}

// settle waits until everything waits for a timer or an event, and lets the
// informers' and the status writers' short delays pass.
func (r *rig) settle() {
	synctest.Wait()
	r.advance(500 * time.Millisecond)
}

func (r *rig) advance(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

func (r *rig) create(pod *corev1.Pod) *corev1.Pod {
	r.t.Helper()
	pod.Namespace, pod.UID, pod.Spec.NodeName = "default", types.UID("uid-"+pod.Name), "n1"
	pod.CreationTimestamp = metav1.Now()
	created, err := r.client.CoreV1().Pods("default").Create(context.Background(), pod, metav1.CreateOptions{})
	if err != nil {
		r.t.Fatal(err)
	}
	r.settle()
	return created
}

func (r *rig) get(name string) *corev1.Pod {
	r.t.Helper()
	pod, err := r.client.CoreV1().Pods("default").Get(context.Background(), name, metav1.GetOptions{})
	if err != nil {
		r.t.Fatal(err)
	}
	return pod
}

func (r *rig) delete(name string, grace int64) {
	r.t.Helper()
	pod := r.get(name)
	now := metav1.Now()
	pod.DeletionTimestamp, pod.DeletionGracePeriodSeconds = &now, &grace
	if _, err := r.client.CoreV1().Pods("default").Update(context.Background(), pod, metav1.UpdateOptions{}); err != nil {
		r.t.Fatal(err)
	}
}

// writes counts the status patches of pods.
func (r *rig) writes() int {
	n := 0
	for _, a := range r.client.Actions() {
		if a.GetVerb() == "patch" && a.GetResource().Resource == "pods" {
			n++
		}
	}
	return n
}

// calls returns what the runtime was asked, on one line.
func (r *rig) calls() string { return strings.Join(r.runtime.Calls(), ", ") }

func (r *rig) eventTexts() string {
	var out []string
	for {
		select {
		case e := <-r.events.Events:
			out = append(out, e)
		default:
			return strings.Join(out, "\n")
		}
	}
}

func pod(name string, containers ...corev1.Container) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.PodSpec{
		RestartPolicy: corev1.RestartPolicyAlways, DNSPolicy: corev1.DNSClusterFirst, Containers: containers}}
}

func app(name string) corev1.Container {
	return corev1.Container{Name: name, Image: "web:1", ImagePullPolicy: corev1.PullIfNotPresent}
}

func condition(p *corev1.Pod, kind corev1.PodConditionType) corev1.ConditionStatus {
	for _, c := range p.Status.Conditions {
		if c.Type == kind {
			return c.Status
		}
	}
	return "absent"
}
