package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	csipb "github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	registerapi "k8s.io/kubelet/pkg/apis/pluginregistration/v1"

	"github.com/periplus/periplus/csi"
	"github.com/periplus/periplus/csi/csitest"
	"github.com/periplus/periplus/linux/disk"
	"github.com/periplus/periplus/linux/mount"
)

const name = "disk.example.com"

func main() {
	dir := flag.String("dir", "", "where the volumes are, and the driver's socket")
	kubelet := flag.String("kubelet", "", "the kubelet's directory")
	flag.Parse()
	if err := run(*dir, *kubelet); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(dir, kubelet string) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	endpoint := filepath.Join(dir, "csi.sock")
	services := grpc.NewServer()
	csi.Register(services, &driver{Driver: csitest.Driver{Name: name}, dir: dir})
	registration := grpc.NewServer()
	registerapi.RegisterRegistrationServer(registration, &plugin{endpoint: endpoint})
	registry := filepath.Join(kubelet, "plugins_registry")
	if err := errors.Join(os.MkdirAll(dir, 0o750), os.MkdirAll(registry, 0o750)); err != nil {
		return err
	}
	ended := make(chan error, 2)
	for socket, s := range map[string]*grpc.Server{endpoint: services, filepath.Join(registry, name+"-reg.sock"): registration} {
		_ = os.Remove(socket)
		l, err := net.Listen("unix", socket)
		if err != nil {
			return err
		}
		go func() { ended <- s.Serve(l) }()
	}
	<-ctx.Done()
	registration.Stop()
	services.Stop()
	return errors.Join(<-ended, <-ended)
}

// plugin tells the kubelet where the driver is.
type plugin struct {
	registerapi.UnimplementedRegistrationServer
	endpoint string
}

func (p *plugin) GetInfo(context.Context, *registerapi.InfoRequest) (*registerapi.PluginInfo, error) {
	return &registerapi.PluginInfo{Type: registerapi.CSIPlugin, Name: name, Endpoint: p.endpoint, SupportedVersions: []string{"1.0.0"}}, nil
}

func (p *plugin) NotifyRegistrationStatus(_ context.Context, s *registerapi.RegistrationStatus) (*registerapi.RegistrationStatusResponse, error) {
	if !s.PluginRegistered {
		fmt.Fprintln(os.Stderr, "not registered:", s.Error)
	}
	return &registerapi.RegistrationStatusResponse{}, nil
}

// driver is the driver in memory, with directories and real mounts.
type driver struct {
	csitest.Driver
	dir string
}

func (d *driver) volume(id string) string { return filepath.Join(d.dir, filepath.Base(id)) }

// CreateVolume makes a directory.
func (d *driver) CreateVolume(ctx context.Context, r *csipb.CreateVolumeRequest) (*csipb.CreateVolumeResponse, error) {
	resp, err := d.Driver.CreateVolume(ctx, r)
	if err != nil {
		return nil, err
	}
	return resp, os.MkdirAll(d.volume(resp.GetVolume().GetVolumeId()), 0o777)
}

// DeleteVolume removes it.
func (d *driver) DeleteVolume(_ context.Context, r *csipb.DeleteVolumeRequest) (*csipb.DeleteVolumeResponse, error) {
	return &csipb.DeleteVolumeResponse{}, os.RemoveAll(d.volume(r.GetVolumeId()))
}

// ControllerPublishVolume leaves a mark, without which nothing can be staged.
func (d *driver) ControllerPublishVolume(ctx context.Context, r *csipb.ControllerPublishVolumeRequest) (*csipb.ControllerPublishVolumeResponse, error) {
	if err := os.WriteFile(d.volume(r.GetVolumeId())+".attached", nil, 0o600); err != nil {
		return nil, status.Error(codes.Internal, err.Error())
	}
	return d.Driver.ControllerPublishVolume(ctx, r)
}

// ControllerUnpublishVolume removes the mark.
func (d *driver) ControllerUnpublishVolume(_ context.Context, r *csipb.ControllerUnpublishVolumeRequest) (*csipb.ControllerUnpublishVolumeResponse, error) {
	err := os.Remove(d.volume(r.GetVolumeId()) + ".attached")
	if errors.Is(err, os.ErrNotExist) {
		err = nil
	}
	return &csipb.ControllerUnpublishVolumeResponse{}, err
}

// NodeStageVolume binds the directory to the staging path.
func (d *driver) NodeStageVolume(_ context.Context, r *csipb.NodeStageVolumeRequest) (*csipb.NodeStageVolumeResponse, error) {
	source := d.volume(r.GetVolumeId())
	if _, err := os.Stat(source + ".attached"); err != nil || r.GetPublishContext()["device"] == "" {
		return nil, status.Error(codes.FailedPrecondition, "the volume is not attached")
	}
	return &csipb.NodeStageVolumeResponse{}, bind(source, r.GetStagingTargetPath())
}

// NodeUnstageVolume undoes it.
func (d *driver) NodeUnstageVolume(_ context.Context, r *csipb.NodeUnstageVolumeRequest) (*csipb.NodeUnstageVolumeResponse, error) {
	return &csipb.NodeUnstageVolumeResponse{}, mount.Unmount(r.GetStagingTargetPath())
}

// NodePublishVolume binds what is staged to the pod's path.
func (d *driver) NodePublishVolume(_ context.Context, r *csipb.NodePublishVolumeRequest) (*csipb.NodePublishVolumeResponse, error) {
	return &csipb.NodePublishVolumeResponse{}, bind(r.GetStagingTargetPath(), r.GetTargetPath())
}

// NodeUnpublishVolume undoes it.
func (d *driver) NodeUnpublishVolume(_ context.Context, r *csipb.NodeUnpublishVolumeRequest) (*csipb.NodeUnpublishVolumeResponse, error) {
	return &csipb.NodeUnpublishVolumeResponse{}, mount.Unmount(r.GetTargetPath())
}

func bind(source, target string) error {
	if err := os.MkdirAll(target, 0o750); err != nil {
		return err
	}
	if is, err := mount.IsPoint(target); err != nil || is {
		return err
	}
	return disk.Bind(source, target, false, nil)
}
