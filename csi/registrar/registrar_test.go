package registrar_test

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"testing"

	"google.golang.org/grpc"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
	registerapi "k8s.io/kubelet/pkg/apis/pluginregistration/v1"

	"github.com/periplus/periplus/csi"
	"github.com/periplus/periplus/csi/csitest"
	"github.com/periplus/periplus/csi/registrar"
)

// plugin is a driver's registration socket.
type plugin struct {
	registerapi.UnimplementedRegistrationServer
	endpoint string
	status   chan *registerapi.RegistrationStatus
}

func (p *plugin) GetInfo(context.Context, *registerapi.InfoRequest) (*registerapi.PluginInfo, error) {
	return &registerapi.PluginInfo{Type: registerapi.CSIPlugin, Name: "disk.example.com", Endpoint: p.endpoint, SupportedVersions: []string{"1.0.0"}}, nil
}

func (p *plugin) NotifyRegistrationStatus(_ context.Context, s *registerapi.RegistrationStatus) (*registerapi.RegistrationStatusResponse, error) {
	p.status <- s
	return &registerapi.RegistrationStatusResponse{}, nil
}

func serve(t *testing.T, socket string, register func(*grpc.Server)) (stop func()) {
	t.Helper()
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	s := grpc.NewServer()
	register(s)
	done := make(chan error, 1)
	go func() { done <- s.Serve(l) }()
	return func() {
		s.Stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

// TestDrivers: a built-in driver is announced, one with a socket comes and goes.
func TestDrivers(t *testing.T) {
	t.Parallel()
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1", UID: "u"}}
	client := fake.NewClientset(node)
	dir := filepath.Join(t.TempDir(), "registry")
	drivers := csi.NewDrivers()
	drivers.Builtin("own", nil)
	registered := make(chan struct{})
	r := registrar.New(registrar.Config{
		Node: "n1", Dir: dir, Client: client, Drivers: drivers, Registered: registered, NodeObject: func() *corev1.Node { return node },
		Builtin: []registrar.Builtin{{Name: "own", NodeID: "n1", TopologyKeys: []string{"k"}}},
	})
	ctx, cancel := context.WithCancel(t.Context())
	watch, err := client.StorageV1().CSINodes().Watch(ctx, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- r.Run(ctx) }()
	defer func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}()
	next := func() []storagev1.CSINodeDriver {
		return (<-watch.ResultChan()).Object.(*storagev1.CSINode).Spec.Drivers
	}
	close(registered)
	if d := next(); len(d) != 1 || d[0].Name != "own" || d[0].NodeID != "n1" {
		t.Fatalf("%+v", d)
	}

	sockets := t.TempDir()
	endpoint := filepath.Join(sockets, "csi.sock")
	defer serve(t, endpoint, func(s *grpc.Server) {
		csi.Register(s, &csitest.Driver{Name: "disk.example.com", Topology: map[string]string{"zone": "z"}})
	})()
	p := &plugin{endpoint: endpoint, status: make(chan *registerapi.RegistrationStatus, 1)}
	// The directory may not be there yet: sockets appear in it by a rename.
	made := filepath.Join(sockets, "reg.sock")
	stop := serve(t, made, func(s *grpc.Server) { registerapi.RegisterRegistrationServer(s, p) })
	defer stop()
	if err := os.MkdirAll(dir, 0o750); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(made, filepath.Join(dir, "reg.sock")); err != nil {
		t.Fatal(err)
	}
	if s := <-p.status; !s.PluginRegistered {
		t.Fatal(s.Error)
	}
	d := next()
	if len(d) != 2 || d[1].NodeID != "id-of-node" || *d[1].Allocatable.Count != 7 || d[1].TopologyKeys[0] != "zone" {
		t.Fatalf("%+v", d)
	}
	n, err := client.CoreV1().Nodes().Get(ctx, "n1", metav1.GetOptions{})
	if err != nil || n.Labels["zone"] != "z" {
		t.Errorf("labels %v, %v", n.Labels, err)
	}
	if _, err := drivers.Get("disk.example.com"); err != nil {
		t.Error(err)
	}
	if err := os.Remove(filepath.Join(dir, "reg.sock")); err != nil {
		t.Fatal(err)
	}
	if d := next(); len(d) != 1 || drivers.Has("disk.example.com") {
		t.Errorf("%+v", d)
	}
}
