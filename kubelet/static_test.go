package kubelet_test

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/cache"

	"github.com/periplus/periplus/kubelet"
	"github.com/periplus/periplus/kubelet/kubelettest"
)

const manifest = `apiVersion: v1
kind: Pod
metadata:
  name: static
spec:
  containers:
  - name: web
    image: web:1
`

// TestStaticPod is not in a bubble: inotify is not of its world.
func TestStaticPod(t *testing.T) {
	t.Parallel()
	root, client, rt := t.TempDir(), fake.NewClientset(), kubelettest.New()
	manifests := filepath.Join(root, "manifests")
	if err := os.MkdirAll(manifests, 0o755); err != nil {
		t.Fatal(err)
	}
	factory := informers.NewSharedInformerFactory(client, 0)
	pods, nodes := factory.Core().V1().Pods().Informer(), factory.Core().V1().Nodes().Informer()
	running, stopped, gone := make(chan struct{}), make(chan struct{}), make(chan struct{})
	seen := func(obj any) {
		if p := obj.(*corev1.Pod); p.Name == "static-n1" && condition(p, corev1.PodReady) == corev1.ConditionTrue {
			select {
			case <-running:
			default:
				close(running)
			}
		}
	}
	_, err := pods.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    seen,
		UpdateFunc: func(_, obj any) { seen(obj) },
		DeleteFunc: func(any) { close(gone) },
	})
	if err != nil {
		t.Fatal(err)
	}
	k, err := kubelet.New(kubelet.Config{NodeName: "n1", Client: client, Pods: pods, NodeInformer: nodes, Runtime: rt,
		Images: kubelettest.NewImages("web:1"), Log: slog.New(slog.DiscardHandler), StaticPodPath: manifests,
		RootDir: filepath.Join(root, "kubelet"), LogDir: filepath.Join(root, "logs")})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	factory.Start(ctx.Done())
	go func() {
		defer close(stopped)
		if err := k.Run(ctx); err != nil {
			t.Errorf("Run: %v", err)
		}
	}()
	path := filepath.Join(manifests, "static.yaml")
	if err := os.WriteFile(path, []byte(manifest), 0o600); err != nil {
		t.Fatal(err)
	}
	<-running
	mirror, err := client.CoreV1().Pods("default").Get(ctx, "static-n1", metav1.GetOptions{})
	if err != nil || mirror.Annotations[corev1.MirrorPodAnnotationKey] == "" || len(mirror.OwnerReferences) != 1 {
		t.Errorf("mirror: %+v, %v", mirror, err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	<-gone
	cancel()
	<-stopped
	factory.Shutdown()
}
