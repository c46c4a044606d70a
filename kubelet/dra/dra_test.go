package dra_test

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"google.golang.org/grpc"
	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	drapb "k8s.io/kubelet/pkg/apis/dra/v1"

	"github.com/periplus/periplus/kubelet/dra"
)

const driverName = "gpu.example.com"

// driver prepares everything, unless fault says otherwise.
type driver struct {
	drapb.UnimplementedDRAPluginServer
	mu    sync.Mutex // guards the rest
	calls []string
	fault string
}

func (d *driver) note(s string) string {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.calls = append(d.calls, s)
	return d.fault
}

func (d *driver) NodePrepareResources(_ context.Context, r *drapb.NodePrepareResourcesRequest) (*drapb.NodePrepareResourcesResponse, error) {
	out := &drapb.NodePrepareResourcesResponse{Claims: map[string]*drapb.NodePrepareResourceResponse{}}
	for _, c := range r.Claims {
		out.Claims[c.Uid] = &drapb.NodePrepareResourceResponse{Error: d.note("prepare " + c.Name), Devices: []*drapb.Device{
			{RequestNames: []string{"small"}, PoolName: "p", DeviceName: "d1", CdiDeviceIds: []string{"x/gpu=1"}},
			{RequestNames: []string{"big/first"}, PoolName: "p", DeviceName: "d2", CdiDeviceIds: []string{"x/gpu=2", "x/gpu=all"}},
		}}
	}
	return out, nil
}

func (d *driver) NodeUnprepareResources(_ context.Context, r *drapb.NodeUnprepareResourcesRequest) (*drapb.NodeUnprepareResourcesResponse, error) {
	out := &drapb.NodeUnprepareResourcesResponse{Claims: map[string]*drapb.NodeUnprepareResourceResponse{}}
	for _, c := range r.Claims {
		out.Claims[c.Uid] = &drapb.NodeUnprepareResourceResponse{Error: d.note("unprepare " + c.Name)}
	}
	return out, nil
}

func (d *driver) serve(t *testing.T) (socket string) {
	t.Helper()
	dir, err := os.MkdirTemp("", "dra") //nolint:usetesting // t.TempDir is too long for a socket
	if err != nil {
		t.Fatal(err)
	}
	socket = filepath.Join(dir, "s")
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	s := grpc.NewServer()
	drapb.RegisterDRAPluginServer(s, d)
	go s.Serve(l) //nolint:errcheck // ends with Stop
	t.Cleanup(func() { s.Stop(); _ = os.RemoveAll(dir) })
	return socket
}

func claim(name string, users ...types.UID) *resourceapi.ResourceClaim {
	c := &resourceapi.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID("uid-" + name)}}
	c.Status.Allocation = &resourceapi.AllocationResult{Devices: resourceapi.DeviceAllocationResult{Results: []resourceapi.DeviceRequestAllocationResult{{Driver: driverName, Request: "small", Pool: "p", Device: "d1"}}}}
	for _, u := range users {
		c.Status.ReservedFor = append(c.Status.ReservedFor, resourceapi.ResourceClaimConsumerReference{Resource: "pods", Name: string(u), UID: u})
	}
	return c
}

func pod(name, claim string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID(name)}, Spec: corev1.PodSpec{
		ResourceClaims: []corev1.PodResourceClaim{{Name: "c", ResourceClaimName: &claim}}}}
}

func container(request string) *corev1.Container {
	return &corev1.Container{Resources: corev1.ResourceRequirements{Claims: []corev1.ResourceClaim{{Name: "c", Request: request}}}}
}

func TestClaims(t *testing.T) {
	t.Parallel()
	d := &driver{}
	dir := t.TempDir()
	client := fake.NewClientset(claim("shared", "one", "two"), claim("other", "two"))
	make := func() *dra.Claims {
		c := dra.New(dra.Config{Node: "n", Client: client, Dir: dir, Log: slog.New(slog.DiscardHandler)})
		t.Cleanup(c.Close)
		return c
	}
	c := make()
	ctx := t.Context()
	expect := func(err error, want string) {
		t.Helper()
		if fmt.Sprint(err) != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
	one, two := pod("one", "shared"), pod("two", "shared")
	expect(c.Prepare(ctx, one), "prepare dynamic resources: DRA driver gpu.example.com is not registered")
	expect(c.Add(ctx, driverName, "/x", []string{"v9.DRAPlugin"}), `DRA driver gpu.example.com: none of the versions ["v9.DRAPlugin"] is supported, only v1.DRAPlugin`)
	socket := d.serve(t)
	expect(c.Add(ctx, driverName, socket, []string{"v1beta1.DRAPlugin", "v1.DRAPlugin"}), "<nil>")
	expect(c.Prepare(ctx, pod("one", "other")), "prepare dynamic resources: pod one (one) is not allowed to use ResourceClaim other (uid-other)")
	d.fault = "broken"
	expect(c.Prepare(ctx, one), "prepare dynamic resources: NodePrepareResources failed for ResourceClaim shared: broken")
	d.fault = ""
	expect(c.Prepare(ctx, one), "<nil>")
	expect(c.Prepare(ctx, one), "<nil>")
	expect(c.Prepare(ctx, two), "<nil>")
	for request, want := range map[string]string{"": "[x/gpu=1 x/gpu=2 x/gpu=all]", "small": "[x/gpu=1]", "big": "[x/gpu=2 x/gpu=all]", "none": "[]"} {
		if got, err := c.Devices(one, container(request)); err != nil || fmt.Sprint(got) != want {
			t.Errorf("%q: %v, %v", request, got, err)
		}
	}
	c = make() // another life, to which the driver registers again
	expect(c.Add(ctx, driverName, socket, []string{"v1.DRAPlugin"}), "<nil>")
	if users := c.Users(); len(users) != 2 {
		t.Errorf("users %v", users)
	}
	expect(c.Unprepare(ctx, "one"), "<nil>")
	expect(c.Unprepare(ctx, "one"), "<nil>")
	d.fault = "busy"
	expect(c.Unprepare(ctx, "two"), "unprepare dynamic resources: NodeUnprepareResources failed for ResourceClaim shared: busy")
	d.fault = ""
	expect(c.Unprepare(ctx, "two"), "<nil>")
	if got, want := strings.Join(d.calls, ", "), "prepare shared, prepare shared, unprepare shared, unprepare shared"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if users := c.Users(); len(users) != 0 {
		t.Errorf("users %v", users)
	}
}
