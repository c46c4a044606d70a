package local

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	csipb "github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/periplus/periplus/base"
	"github.com/periplus/periplus/linux/disk"
	"github.com/periplus/periplus/linux/loop"
	"github.com/periplus/periplus/linux/mount"
)

// NodeGetCapabilities implements csi.NodeServer.
func (s *Server) NodeGetCapabilities(context.Context, *csipb.NodeGetCapabilitiesRequest) (*csipb.NodeGetCapabilitiesResponse, error) {
	resp := &csipb.NodeGetCapabilitiesResponse{}
	can := []csipb.NodeServiceCapability_RPC_Type{
		csipb.NodeServiceCapability_RPC_STAGE_UNSTAGE_VOLUME,
		csipb.NodeServiceCapability_RPC_GET_VOLUME_STATS,
		csipb.NodeServiceCapability_RPC_SINGLE_NODE_MULTI_WRITER,
	}
	if growsMounted() {
		can = append(can, csipb.NodeServiceCapability_RPC_EXPAND_VOLUME)
	}
	for _, t := range can {
		resp.Capabilities = append(resp.Capabilities, &csipb.NodeServiceCapability{
			Type: &csipb.NodeServiceCapability_Rpc{Rpc: &csipb.NodeServiceCapability_RPC{Type: t}}})
	}
	return resp, nil
}

// NodeGetInfo implements csi.NodeServer.
func (s *Server) NodeGetInfo(context.Context, *csipb.NodeGetInfoRequest) (*csipb.NodeGetInfoResponse, error) {
	return &csipb.NodeGetInfoResponse{NodeId: s.config.Node, MaxVolumesPerNode: s.config.MaxVolumes, AccessibleTopology: s.topology()[0]}, nil
}

// NodeStageVolume implements csi.NodeServer: it attaches the image and mounts it at
// the staging path, or attaches it only.
func (s *Server) NodeStageVolume(ctx context.Context, req *csipb.NodeStageVolumeRequest) (*csipb.NodeStageVolumeResponse, error) {
	id, dir, capability := req.GetVolumeId(), req.GetStagingTargetPath(), req.GetVolumeCapability()
	if id == "" || dir == "" || capability == nil {
		return nil, status.Error(codes.InvalidArgument, "volume id, staging path and capability are needed")
	}
	defer s.hold(id)()
	r, err := s.volume(id)
	if err != nil {
		return nil, err
	}
	if err := usable([]*csipb.VolumeCapability{capability}); err != nil {
		return nil, err
	}
	image := s.disk.path(volumesDir, id, imageName)
	switch {
	case capability.GetBlock() != nil && r.Backing != backingImage:
		return nil, status.Error(codes.InvalidArgument, "a volume with backing directory is no block device")
	case capability.GetBlock() != nil:
		_, err = device(image)
	case r.Backing == backingDirectory:
		err = os.MkdirAll(dir, 0o750) // what is published is the directory itself
	default:
		err = s.mountImage(ctx, r, image, dir, capability.GetMount())
	}
	if err != nil {
		return nil, internal(err)
	}
	return &csipb.NodeStageVolumeResponse{}, nil
}

// device returns the device of an image, attaching it if it is not.
func device(image string) (string, error) {
	devices, err := loop.Find(image)
	if err != nil {
		return "", err
	}
	if len(devices) > 0 {
		return devices[0], nil
	}
	f, err := loop.Attach(image, loop.Options{})
	if err != nil {
		return "", err
	}
	return f.Name(), f.Close()
}

func (s *Server) mountImage(ctx context.Context, r *record, image, dir string, m *csipb.VolumeCapability_MountVolume) error {
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return err
	}
	if mounted, err := mount.IsPoint(dir); err != nil || mounted {
		return err
	}
	devices, err := loop.Find(image)
	if err != nil {
		return err
	}
	if len(devices) == 0 {
		if err := s.prepare(ctx, r, image); err != nil {
			return err
		}
	}
	f, err := loop.Attach(image, loop.Options{AutoClear: true})
	if err != nil {
		return err
	}
	defer f.Close() //nolint:errcheck // the mount holds the device
	if len(devices) > 0 {
		// A device of the last mount that is not gone yet: it is as large as its image was.
		if err := loop.Grow(f.Name()); err != nil {
			return err
		}
		if err := disk.GrowOffline(ctx, f.Name()); err != nil {
			s.config.Log.Warn("the file system of a volume does not grow", base.KeyName, r.id, base.KeyError, err)
		}
	}
	err = disk.Mount(f.Name(), dir, r.FSType, m.GetMountFlags())
	if err != nil && disk.Damaged(err) && r.FSType == "ext4" {
		if e := disk.Repair(ctx, f.Name(), true); e != nil {
			return errors.Join(err, e)
		}
		err = disk.Mount(f.Name(), dir, r.FSType, m.GetMountFlags())
	}
	return err
}

// prepare makes the file system where there is none yet, and lets it grow to the
// size of its image, which needs no privilege while it is not mounted.
func (s *Server) prepare(ctx context.Context, r *record, image string) error {
	if r.Formatted {
		return disk.GrowOffline(ctx, image)
	}
	kind, err := disk.Kind(image)
	if err != nil {
		return err
	}
	if kind == "" {
		if err := disk.Format(ctx, image, r.FSType); err != nil {
			return err
		}
		kind = r.FSType
	}
	r.FSType, r.Formatted = kind, true
	return s.disk.update(volumesDir, r)
}

// NodeUnstageVolume implements csi.NodeServer.
func (s *Server) NodeUnstageVolume(_ context.Context, req *csipb.NodeUnstageVolumeRequest) (*csipb.NodeUnstageVolumeResponse, error) {
	id, dir := req.GetVolumeId(), req.GetStagingTargetPath()
	if id == "" || dir == "" {
		return nil, status.Error(codes.InvalidArgument, "volume id and staging path are needed")
	}
	defer s.hold(id)()
	if err := mount.Unmount(dir); err != nil {
		return nil, internal(err)
	}
	if plainID.MatchString(id) {
		// A device without a mount was attached for block use.
		devices, err := loop.Find(s.disk.path(volumesDir, id, imageName))
		if err != nil {
			return nil, internal(err)
		}
		for _, d := range devices {
			if err := loop.Detach(d); err != nil {
				return nil, internal(err)
			}
		}
	}
	return &csipb.NodeUnstageVolumeResponse{}, nil
}

// NodePublishVolume implements csi.NodeServer: a bind mount of what is staged.
func (s *Server) NodePublishVolume(_ context.Context, req *csipb.NodePublishVolumeRequest) (*csipb.NodePublishVolumeResponse, error) {
	id, target, capability := req.GetVolumeId(), req.GetTargetPath(), req.GetVolumeCapability()
	if id == "" || target == "" || capability == nil {
		return nil, status.Error(codes.InvalidArgument, "volume id, target path and capability are needed")
	}
	defer s.hold(id)()
	r, err := s.volume(id)
	if err != nil {
		return nil, err
	}
	if req.GetStagingTargetPath() == "" {
		return nil, status.Error(codes.FailedPrecondition, "the volume is not staged: no staging path")
	}
	if err := s.publish(r, req); err != nil {
		if _, ok := status.FromError(err); ok {
			return nil, err
		}
		return nil, internal(err)
	}
	return &csipb.NodePublishVolumeResponse{}, nil
}

func (s *Server) publish(r *record, req *csipb.NodePublishVolumeRequest) error {
	target, source := req.GetTargetPath(), req.GetStagingTargetPath()
	if req.GetVolumeCapability().GetBlock() != nil {
		d, err := device(s.disk.path(volumesDir, r.id, imageName))
		if err != nil {
			return err
		}
		if err := makeFile(target); err != nil {
			return err
		}
		if _, is := disk.IsBlock(target); is {
			return nil
		}
		return disk.Bind(d, target, req.GetReadonly(), nil)
	}
	if r.Backing == backingDirectory {
		source = s.disk.path(volumesDir, r.id, treeName)
	} else if staged, err := mount.IsPoint(source); err != nil || !staged {
		return errors.Join(err, status.Errorf(codes.FailedPrecondition, "volume %s is not staged at %s", r.id, source))
	}
	if mounted, err := mount.IsPoint(target); err != nil || mounted {
		return err
	}
	if req.GetVolumeCapability().GetAccessMode().GetMode() == csipb.VolumeCapability_AccessMode_SINGLE_NODE_SINGLE_WRITER {
		if err := s.unpublished(r, source); err != nil {
			return err
		}
	}
	if err := os.MkdirAll(target, 0o750); err != nil {
		return err
	}
	return disk.Bind(source, target, req.GetReadonly(), nil)
}

// unpublished refuses a second user of a volume that may have one only.
func (s *Server) unpublished(r *record, staging string) error {
	devices, err := loop.Find(s.disk.path(volumesDir, r.id, imageName))
	if err != nil || len(devices) == 0 {
		return err
	}
	points, err := mount.Of(devices[0])
	if err != nil {
		return err
	}
	for _, p := range points {
		if p != staging {
			return status.Errorf(codes.FailedPrecondition, "volume %s is in use at %s already, and its access mode allows one user", r.id, p)
		}
	}
	return nil
}

func makeFile(path string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	return f.Close()
}

// NodeUnpublishVolume implements csi.NodeServer.
func (s *Server) NodeUnpublishVolume(_ context.Context, req *csipb.NodeUnpublishVolumeRequest) (*csipb.NodeUnpublishVolumeResponse, error) {
	id, target := req.GetVolumeId(), req.GetTargetPath()
	if id == "" || target == "" {
		return nil, status.Error(codes.InvalidArgument, "volume id and target path are needed")
	}
	defer s.hold(id)()
	if err := mount.Unmount(target); err != nil {
		return nil, internal(err)
	}
	if err := os.Remove(target); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, internal(err)
	}
	return &csipb.NodeUnpublishVolumeResponse{}, nil
}

// NodeGetVolumeStats implements csi.NodeServer.
func (s *Server) NodeGetVolumeStats(_ context.Context, req *csipb.NodeGetVolumeStatsRequest) (*csipb.NodeGetVolumeStatsResponse, error) {
	id, path := req.GetVolumeId(), req.GetVolumePath()
	if id == "" || path == "" {
		return nil, status.Error(codes.InvalidArgument, "volume id and path are needed")
	}
	if _, err := s.volume(id); err != nil {
		return nil, err
	}
	if _, err := os.Stat(path); err != nil {
		return nil, status.Errorf(codes.NotFound, "volume %s is not at %s: %v", id, path, err)
	}
	if size, is := disk.IsBlock(path); is {
		return &csipb.NodeGetVolumeStatsResponse{Usage: []*csipb.VolumeUsage{{Unit: csipb.VolumeUsage_BYTES, Total: size}}}, nil
	}
	space, err := mount.Free(path)
	if err != nil {
		return nil, internal(err)
	}
	usage := func(unit csipb.VolumeUsage_Unit, total, free, used uint64) *csipb.VolumeUsage {
		return &csipb.VolumeUsage{Unit: unit, Total: int64(total), Available: int64(free), Used: int64(used)} //nolint:gosec // disks are smaller than 2^63
	}
	return &csipb.NodeGetVolumeStatsResponse{Usage: []*csipb.VolumeUsage{
		usage(csipb.VolumeUsage_BYTES, space.Capacity, space.Available, space.Used),
		usage(csipb.VolumeUsage_INODES, space.Inodes, space.InodesFree, space.Inodes-space.InodesFree),
	}}, nil
}

// NodeExpandVolume implements csi.NodeServer: it lets the mounted file system grow.
func (s *Server) NodeExpandVolume(ctx context.Context, req *csipb.NodeExpandVolumeRequest) (*csipb.NodeExpandVolumeResponse, error) {
	id, path := req.GetVolumeId(), req.GetVolumePath()
	if id == "" || path == "" {
		return nil, status.Error(codes.InvalidArgument, "volume id and path are needed")
	}
	defer s.hold(id)()
	r, err := s.volume(id)
	if err != nil {
		return nil, err
	}
	if _, err := os.Stat(path); err != nil {
		return nil, status.Errorf(codes.NotFound, "volume %s is not at %s: %v", id, path, err)
	}
	resp := &csipb.NodeExpandVolumeResponse{CapacityBytes: r.Size}
	if _, device := disk.IsBlock(path); device || r.Backing != backingImage {
		return resp, nil
	}
	if mounted, err := mount.IsPoint(path); err != nil || !mounted {
		return nil, errors.Join(err, status.Errorf(codes.NotFound, "volume %s is not mounted at %s", id, path))
	}
	if err := growDevices(s.disk.path(volumesDir, id, imageName)); err != nil {
		return nil, internal(err)
	}
	err = disk.GrowOnline(ctx, path, r.Size)
	if errors.Is(err, disk.ErrNeedsUnmount) {
		return nil, status.Error(codes.FailedPrecondition, fmt.Sprintf("%v: this process lacks CAP_SYS_RESOURCE; it grows when the last pod that uses it has ended and the next one starts", err))
	}
	if err != nil {
		return nil, internal(err)
	}
	return resp, nil
}
