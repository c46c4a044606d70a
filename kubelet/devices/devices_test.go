package devices_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	pluginapi "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"

	"github.com/periplus/periplus/kubelet/devices"
	"github.com/periplus/periplus/kubelet/devices/devicestest"
)

const gpu = "example.com/gpu"

// machine is a registry that runs, with a channel of its changes.
type machine struct {
	*devices.Registry
	dir     string
	changes chan struct{}
	stop    func()
}

func start(t *testing.T, dir string) *machine {
	t.Helper()
	m := &machine{dir: dir, changes: make(chan struct{}, 100)}
	r, err := devices.New(devices.Config{Dir: dir, Log: slog.New(slog.DiscardHandler), Changed: func() { m.changes <- struct{}{} }})
	if err != nil {
		t.Fatal(err)
	}
	m.Registry = r
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- r.Run(ctx) }()
	m.stop = func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		m.stop = func() {}
	}
	t.Cleanup(func() { m.stop() })
	return m
}

// until waits until the resource has that capacity and that many are healthy.
func (m *machine) until(t *testing.T, want string) {
	t.Helper()
	for {
		all, healthy := m.Capacity()
		a, h := all[gpu], healthy[gpu]
		if fmt.Sprintf("%d/%d", h.Value(), a.Value()) == want {
			return
		}
		select {
		case <-m.changes:
		case <-t.Context().Done():
			t.Fatalf("%d/%d, want %s", h.Value(), a.Value(), want)
		}
	}
}

// folder is short enough for sockets.
func folder(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "dev") //nolint:usetesting // t.TempDir is too long for a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

func pod(name string, init, app int64) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("uid-" + name)}}
	c := func(name string, n int64) corev1.Container {
		return corev1.Container{Name: name, Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{gpu: *resource.NewQuantity(n, resource.DecimalSI)}}}
	}
	if init > 0 {
		p.Spec.InitContainers = []corev1.Container{c("init", init)}
	}
	p.Spec.Containers = []corev1.Container{c("app", app)}
	return p
}

func (m *machine) ids(p *corev1.Pod, container string) string {
	list := m.For(p.UID, container)
	if len(list) == 0 {
		return "none"
	}
	return fmt.Sprint(list[0].IDs)
}

func TestDevicesFromRegistrationToRelease(t *testing.T) {
	t.Parallel()
	dir := folder(t)
	m := start(t, dir)
	p := devicestest.New(gpu, "a", "b", "c", "d")
	p.Options = &pluginapi.DevicePluginOptions{PreStartRequired: true, GetPreferredAllocationAvailable: true}
	if err := p.Serve(t.Context(), dirReady(t, m)); err != nil {
		t.Fatal(err)
	}
	m.until(t, "4/4")
	one := pod("one", 1, 2)
	if err := m.Allocate(t.Context(), one, nil); err != nil {
		t.Fatal(err)
	}
	// The plug-in prefers the last ones; the app container gets its init container's.
	if m.ids(one, "init") != "[d]" || m.ids(one, "app") != "[c d]" {
		t.Errorf("init %s, app %s", m.ids(one, "init"), m.ids(one, "app"))
	}
	if err := m.BeforeStart(t.Context(), one.UID, "app"); err != nil {
		t.Fatal(err)
	}
	if want := "prefer 1 of [a b c d], allocate [d], prefer 2 of [d a b c], allocate [c d], start [c d]"; p.Calls() != want {
		t.Errorf("got  %s\nwant %s", p.Calls(), want)
	}
	err := m.Allocate(t.Context(), pod("big", 0, 3), nil)
	if want := "requested number of devices unavailable for example.com/gpu. Requested: 3, Available: 2"; fmt.Sprint(err) != want {
		t.Errorf("%v", err)
	}
	if m.ids(pod("big", 0, 3), "app") != "none" {
		t.Error("a pod that was refused has devices")
	}
	p.SetHealth("a", pluginapi.Unhealthy)
	m.until(t, "3/4")

	// Another life remembers.
	p.Stop()
	m.until(t, "0/4")
	m.stop()
	m = start(t, dir)
	if m.ids(one, "app") != "[c d]" {
		t.Errorf("after a restart: %s", m.ids(one, "app"))
	}
	again := devicestest.New(gpu, "a", "b", "c", "d")
	if err := again.Serve(t.Context(), dirReady(t, m)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(again.Stop)
	m.until(t, "4/4")
	two := pod("two", 0, 2)
	if err := m.Allocate(t.Context(), two, nil); err != nil || m.ids(two, "app") != "[a b]" {
		t.Errorf("%v, %s", err, m.ids(two, "app"))
	}
	m.Keep(func(uid types.UID) bool { return uid == two.UID })
	if m.ids(one, "app") != "none" {
		t.Error("devices of a pod that is gone are not free")
	}
	m.Free(two.UID)
	if len(m.All()) != 0 {
		t.Errorf("%v are still given", m.All())
	}
}

// dirReady is the directory once kubelet.sock was made by this life; gRPC waits for the rest.
func dirReady(t *testing.T, m *machine) string {
	t.Helper()
	return m.dir
}

func TestWrongRegistrations(t *testing.T) {
	t.Parallel()
	m := start(t, folder(t))
	for want, r := range map[string]*pluginapi.RegisterRequest{
		`requested API version "v1" is not supported by kubelet. Supported version is ["v1beta1"]`: {Version: "v1", Endpoint: "a", ResourceName: gpu},
		`the ResourceName "cpu" is invalid`:                                           {Version: "v1beta1", Endpoint: "a", ResourceName: "cpu"},
		`the ResourceName "kubernetes.io/x" is invalid`:                               {Version: "v1beta1", Endpoint: "a", ResourceName: "kubernetes.io/x"},
		`the endpoint "../a" is not the name of a socket in ` + filepath.Clean(m.dir): {Version: "v1beta1", Endpoint: "../a", ResourceName: gpu},
	} {
		if _, err := m.Register(t.Context(), r); fmt.Sprint(err) != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
}
