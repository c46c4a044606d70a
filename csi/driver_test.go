package csi_test

import (
	"context"
	"net"
	"path/filepath"
	"reflect"
	"testing"

	csipb "github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/periplus/periplus/csi"
	"github.com/periplus/periplus/csi/csitest"
)

// serve puts a driver behind a socket.
func serve(t *testing.T, d csi.Server) string {
	t.Helper()
	socket := filepath.Join(t.TempDir(), "csi.sock")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	s := grpc.NewServer()
	csi.Register(s, d)
	done := make(chan error, 1)
	go func() { done <- s.Serve(l) }()
	t.Cleanup(func() {
		s.Stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return socket
}

// TestTransports: a driver is the same in this process and behind a socket.
func TestTransports(t *testing.T) {
	t.Parallel()
	fake := &csitest.Driver{Name: "test", Fail: func(call string) error {
		if call == "DeleteVolume bad" {
			return status.Error(codes.FailedPrecondition, "in use")
		}
		return nil
	}}
	dialed, err := csi.Dial(serve(t, fake))
	if err != nil {
		t.Fatal(err)
	}
	defer dialed.Close() //nolint:errcheck // a test
	ctx := context.Background()
	want := csi.Capabilities{Name: "test", Controller: true, Topology: true, CreateDelete: true, Publish: true, Expand: true, Stage: true, NodeExpand: true}
	for name, d := range map[string]*csi.Driver{"socket": dialed, "in process": csi.InProcess(fake)} {
		have, err := d.Capabilities(ctx)
		if err != nil || !reflect.DeepEqual(have, want) {
			t.Errorf("%s: %+v, %v", name, have, err)
		}
		req := &csipb.CreateVolumeRequest{Name: "v", Parameters: map[string]string{"a": "b"}}
		resp, err := d.CreateVolume(ctx, req)
		if err != nil || resp.GetVolume().GetVolumeId() != "id-v" || resp.GetVolume().GetVolumeContext()["a"] != "b" {
			t.Fatalf("%s: %v, %v", name, resp, err)
		}
		resp.GetVolume().GetVolumeContext()["a"] = "changed"
		if req.GetParameters()["a"] != "b" {
			t.Errorf("%s: request and answer share memory", name)
		}
		_, err = d.DeleteVolume(ctx, &csipb.DeleteVolumeRequest{VolumeId: "bad"})
		if status.Code(err) != codes.FailedPrecondition || csi.Message(err) != "rpc error: code = FailedPrecondition desc = in use" || !csi.Final(err) {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := d.ListVolumes(ctx, &csipb.ListVolumesRequest{}); status.Code(err) != codes.Unimplemented {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestDrivers opens a built-in driver when it is first asked for, once.
func TestDrivers(t *testing.T) {
	t.Parallel()
	opened := 0
	all := csi.NewDrivers()
	all.Builtin("own", func() (*csi.Driver, error) {
		opened++
		return csi.InProcess(&csitest.Driver{Name: "own"}), nil
	})
	if !all.Has("own") || opened != 0 {
		t.Errorf("opened %d times before its first use", opened)
	}
	for range 2 {
		if _, err := all.Get("own"); err != nil {
			t.Fatal(err)
		}
	}
	if opened != 1 {
		t.Errorf("opened %d times", opened)
	}
	if _, err := all.Get("other"); err == nil || err.Error() != "driver name other not found in the list of registered CSI drivers" {
		t.Errorf("%v", err)
	}
	d := csi.InProcess(&csitest.Driver{Name: "other"})
	all.Register("other", d)
	if got, err := all.Get("other"); err != nil || got != d {
		t.Error(err)
	}
	all.Deregister("other", d)
	if all.Has("other") {
		t.Error("it is still there")
	}
}
