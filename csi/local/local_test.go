package local_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	csipb "github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/periplus/periplus/csi"
	"github.com/periplus/periplus/csi/local"
	"github.com/periplus/periplus/linux/loop"
)

var ctx = context.Background()

func open(t *testing.T, dir string) *csi.Driver {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root: attaches loop devices and mounts")
	}
	if err := loop.Available(); err != nil {
		t.Skip(err)
	}
	s, err := local.Open(local.Config{Dir: dir, Node: "n1"})
	if err != nil {
		t.Fatal(err)
	}
	return csi.InProcess(s)
}

func mounted(mode csipb.VolumeCapability_AccessMode_Mode) *csipb.VolumeCapability {
	return csi.Capability(false, mode, "", nil, "")
}

const writer = csipb.VolumeCapability_AccessMode_SINGLE_NODE_WRITER

func request(name string, size int64) *csipb.CreateVolumeRequest {
	return &csipb.CreateVolumeRequest{
		Name: name, CapacityRange: &csipb.CapacityRange{RequiredBytes: size}, VolumeCapabilities: []*csipb.VolumeCapability{mounted(writer)},
		AccessibilityRequirements: &csipb.TopologyRequirement{Requisite: []*csipb.Topology{{Segments: map[string]string{local.TopologyKey: "n1"}}}},
	}
}

// TestRefusals: what cannot be is refused with the code that says what to do.
func TestRefusals(t *testing.T) {
	t.Parallel()
	d := open(t, t.TempDir())
	for name, c := range map[string]struct {
		change func(*csipb.CreateVolumeRequest)
		code   codes.Code
	}{
		"no name": {func(r *csipb.CreateVolumeRequest) { r.Name = "" }, codes.InvalidArgument},
		"many nodes": {func(r *csipb.CreateVolumeRequest) {
			r.VolumeCapabilities[0] = mounted(csipb.VolumeCapability_AccessMode_MULTI_NODE_MULTI_WRITER)
		}, codes.InvalidArgument},
		"unknown parameter": {func(r *csipb.CreateVolumeRequest) { r.Parameters = map[string]string{"colour": "red"} }, codes.InvalidArgument},
		"unknown fs":        {func(r *csipb.CreateVolumeRequest) { r.Parameters = map[string]string{"fsType": "ntfs"} }, codes.InvalidArgument},
		"directory as block": {func(r *csipb.CreateVolumeRequest) {
			r.Parameters = map[string]string{"backing": "directory"}
			r.VolumeCapabilities[0] = csi.Capability(true, writer, "", nil, "")
		}, codes.InvalidArgument},
		"more than the disk": {func(r *csipb.CreateVolumeRequest) { r.CapacityRange.RequiredBytes = 1 << 60 }, codes.ResourceExhausted},
		"another node": {func(r *csipb.CreateVolumeRequest) {
			r.AccessibilityRequirements.Requisite[0].Segments[local.TopologyKey] = "n2"
		}, codes.ResourceExhausted},
		"beyond the limit": {func(r *csipb.CreateVolumeRequest) { r.CapacityRange.LimitBytes = 1 << 20 }, codes.OutOfRange},
	} {
		r := request("v", 32<<20)
		c.change(r)
		if _, err := d.CreateVolume(ctx, r); status.Code(err) != c.code {
			t.Errorf("%s: %v, want %v", name, err, c.code)
		}
	}
}

// TestLife takes a volume from its creation to its end, with a process in between
// that has forgotten everything.
func TestLife(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	d := open(t, dir)
	made, err := d.CreateVolume(ctx, request("pvc-1", 32<<20))
	if err != nil {
		t.Fatal(err)
	}
	id := made.GetVolume().GetVolumeId()
	if again, err := d.CreateVolume(ctx, request("pvc-1", 32<<20)); err != nil || again.GetVolume().GetVolumeId() != id {
		t.Fatalf("again: %v, %v", again, err)
	}
	if _, err := d.CreateVolume(ctx, request("pvc-1", 64<<20)); status.Code(err) != codes.AlreadyExists {
		t.Errorf("another size: %v", err)
	}
	staging, target := filepath.Join(dir, "staging"), filepath.Join(dir, "target")
	stage := func(d *csi.Driver) {
		t.Helper()
		if _, err := d.NodeStageVolume(ctx, &csipb.NodeStageVolumeRequest{VolumeId: id, StagingTargetPath: staging, VolumeCapability: mounted(writer)}); err != nil {
			t.Fatal(err)
		}
		if _, err := d.NodePublishVolume(ctx, &csipb.NodePublishVolumeRequest{VolumeId: id, StagingTargetPath: staging, TargetPath: target, VolumeCapability: mounted(writer)}); err != nil {
			t.Fatal(err)
		}
	}
	unstage := func(d *csi.Driver) {
		t.Helper()
		if _, err := d.NodeUnpublishVolume(ctx, &csipb.NodeUnpublishVolumeRequest{VolumeId: id, TargetPath: target}); err != nil {
			t.Fatal(err)
		}
		if _, err := d.NodeUnstageVolume(ctx, &csipb.NodeUnstageVolumeRequest{VolumeId: id, StagingTargetPath: staging}); err != nil {
			t.Fatal(err)
		}
	}
	stage(d)
	t.Cleanup(func() { unstage(d) })
	if err := os.WriteFile(filepath.Join(target, "kept"), []byte("data"), 0o600); err != nil {
		t.Fatal(err)
	}
	// Its size is a limit.
	if err := os.WriteFile(filepath.Join(target, "big"), make([]byte, 40<<20), 0o600); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("40 MiB in a volume of 32: %v", err)
	}
	if err := os.Remove(filepath.Join(target, "big")); err != nil {
		t.Fatal(err)
	}
	if _, err := d.DeleteVolume(ctx, &csipb.DeleteVolumeRequest{VolumeId: id}); status.Code(err) != codes.FailedPrecondition {
		t.Errorf("deletion of a volume in use: %v", err)
	}

	// A new process knows it by what is on the disk and in the kernel.
	d = open(t, dir)
	stage(d)
	unstage(d)
	if _, err := d.ControllerExpandVolume(ctx, &csipb.ControllerExpandVolumeRequest{VolumeId: id, CapacityRange: &csipb.CapacityRange{RequiredBytes: 64 << 20}}); err != nil {
		t.Fatal(err)
	}
	stage(d)
	if err := os.WriteFile(filepath.Join(target, "big"), make([]byte, 40<<20), 0o600); err != nil {
		t.Errorf("40 MiB in a volume that has grown to 64: %v", err)
	}
	if b, err := os.ReadFile(filepath.Join(target, "kept")); err != nil || string(b) != "data" {
		t.Errorf("%q, %v", b, err)
	}
	unstage(d)
	for { // as a provisioner: a process that another test begins may hold the device for a moment
		_, err := d.DeleteVolume(ctx, &csipb.DeleteVolumeRequest{VolumeId: id})
		if err == nil {
			break
		}
		if status.Code(err) != codes.FailedPrecondition || t.Context().Err() != nil {
			t.Fatal(err)
		}
	}
	if left, err := filepath.Glob(filepath.Join(dir, "volumes", "*")); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}

// TestCrash: what was not finished does not count.
func TestCrash(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, half := range []string{"volumes/.new-pvc-1", "volumes/.gone-pvc-2", "snapshots/.new-s"} {
		if err := os.MkdirAll(filepath.Join(dir, half), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	d := open(t, dir)
	if left, err := filepath.Glob(filepath.Join(dir, "*", ".*")); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
	resp, err := d.ListVolumes(ctx, &csipb.ListVolumesRequest{})
	if err != nil || len(resp.GetEntries()) != 0 {
		t.Errorf("%v, %v", resp, err)
	}
	// Paths in identifiers lead nowhere.
	if _, err := d.DeleteVolume(ctx, &csipb.DeleteVolumeRequest{VolumeId: "../../" + filepath.Base(dir)}); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(dir); err != nil {
		t.Error(err)
	}
}
