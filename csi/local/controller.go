package local

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	csipb "github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/periplus/periplus/base"
	"github.com/periplus/periplus/linux/disk"
	"github.com/periplus/periplus/linux/loop"
	"github.com/periplus/periplus/linux/mount"
)

const (
	defaultSize = 1 << 30
	// A smaller ext4 has no room for anything but its tables.
	minImage = 16 << 20
	// xfs refuses to be smaller.
	minXFS = 300 << 20
	block  = 1 << 20 // sizes are whole MiB
)

// ControllerGetCapabilities implements csi.ControllerServer.
func (s *Server) ControllerGetCapabilities(context.Context, *csipb.ControllerGetCapabilitiesRequest) (*csipb.ControllerGetCapabilitiesResponse, error) {
	resp := &csipb.ControllerGetCapabilitiesResponse{}
	for _, t := range []csipb.ControllerServiceCapability_RPC_Type{
		csipb.ControllerServiceCapability_RPC_CREATE_DELETE_VOLUME,
		csipb.ControllerServiceCapability_RPC_LIST_VOLUMES,
		csipb.ControllerServiceCapability_RPC_GET_CAPACITY,
		csipb.ControllerServiceCapability_RPC_CREATE_DELETE_SNAPSHOT,
		csipb.ControllerServiceCapability_RPC_LIST_SNAPSHOTS,
		csipb.ControllerServiceCapability_RPC_CLONE_VOLUME,
		csipb.ControllerServiceCapability_RPC_EXPAND_VOLUME,
		csipb.ControllerServiceCapability_RPC_SINGLE_NODE_MULTI_WRITER,
	} {
		resp.Capabilities = append(resp.Capabilities, &csipb.ControllerServiceCapability{
			Type: &csipb.ControllerServiceCapability_Rpc{Rpc: &csipb.ControllerServiceCapability_RPC{Type: t}}})
	}
	return resp, nil
}

// CreateVolume implements csi.ControllerServer.
func (s *Server) CreateVolume(ctx context.Context, req *csipb.CreateVolumeRequest) (*csipb.CreateVolumeResponse, error) {
	if req.GetName() == "" {
		return nil, status.Error(codes.InvalidArgument, "the volume has no name")
	}
	if err := usable(req.GetVolumeCapabilities()); err != nil {
		return nil, err
	}
	if err := s.here(req.GetAccessibilityRequirements()); err != nil {
		return nil, err
	}
	want, err := wanted(req)
	if err != nil {
		return nil, err
	}
	defer s.hold(want.id)()
	have, err := s.disk.get(volumesDir, want.id)
	if err != nil {
		return nil, internal(err)
	}
	limit := req.GetCapacityRange().GetLimitBytes()
	if have != nil {
		if have.Size < req.GetCapacityRange().GetRequiredBytes() || limit > 0 && have.Size > limit || have.Source != want.Source || have.Backing != want.Backing {
			return nil, status.Errorf(codes.AlreadyExists, "volume %q exists with other properties: %d bytes", req.GetName(), have.Size)
		}
		return s.created(have, req), nil
	}
	origin, err := s.origin(req, want)
	if err != nil {
		return nil, err
	}
	if limit > 0 && want.Size > limit {
		return nil, status.Errorf(codes.OutOfRange, "a volume of %d bytes is larger than the limit of %d bytes", want.Size, limit)
	}
	if err := s.room(want); err != nil {
		return nil, err
	}
	if err := s.disk.create(volumesDir, want, func(dir string) error { return s.fill(ctx, dir, want, origin, req) }); err != nil {
		return nil, internal(err)
	}
	s.config.Log.Info("volume created", base.KeyName, want.id, "bytes", want.Size)
	return s.created(want, req), nil
}

func (s *Server) created(r *record, req *csipb.CreateVolumeRequest) *csipb.CreateVolumeResponse {
	return &csipb.CreateVolumeResponse{Volume: &csipb.Volume{
		VolumeId: r.id, CapacityBytes: r.Size, AccessibleTopology: s.topology(), ContentSource: req.GetVolumeContentSource(),
	}}
}

// wanted reads what a request asks for.
func wanted(req *csipb.CreateVolumeRequest) (*record, error) {
	r := &record{Name: req.GetName(), id: idOf(req.GetName()), Backing: backingImage, FSType: "ext4", Source: sourceOf(req.GetVolumeContentSource()), Made: time.Now().UTC()}
	for key, value := range req.GetParameters() {
		switch key {
		case "fsType", "fstype":
			r.FSType = value
		case "backing":
			r.Backing = value
		default:
			return nil, status.Errorf(codes.InvalidArgument, "parameter %q is not known: there are fsType and backing", key)
		}
	}
	for _, c := range req.GetVolumeCapabilities() {
		if t := c.GetMount().GetFsType(); t != "" {
			r.FSType = t
		}
	}
	if r.FSType != "ext4" && r.FSType != "xfs" {
		return nil, status.Errorf(codes.InvalidArgument, "fsType %q: must be ext4 or xfs", r.FSType)
	}
	if r.Backing != backingImage && r.Backing != backingDirectory {
		return nil, status.Errorf(codes.InvalidArgument, "backing %q: must be image or directory", r.Backing)
	}
	if r.Backing == backingDirectory && wantsBlock(req.GetVolumeCapabilities()) {
		return nil, status.Error(codes.InvalidArgument, "a volume with backing directory cannot be used as a block device")
	}
	size := req.GetCapacityRange().GetRequiredBytes()
	if size == 0 {
		size = defaultSize
		if limit := req.GetCapacityRange().GetLimitBytes(); limit > 0 {
			size = min(size, limit/block*block)
		}
	}
	least := int64(minImage)
	if r.FSType == "xfs" {
		least = minXFS
	}
	r.Size = max(least, (size+block-1)/block*block)
	return r, nil
}

// origin finds what a copy is made of, and completes want.
func (s *Server) origin(req *csipb.CreateVolumeRequest, want *record) (dir string, err error) {
	source := req.GetVolumeContentSource()
	if source == nil {
		return "", nil
	}
	kind, id := snapshotsDir, source.GetSnapshot().GetSnapshotId()
	if v := source.GetVolume(); v != nil {
		kind, id = volumesDir, v.GetVolumeId()
	}
	from, err := s.disk.get(kind, id)
	if err != nil {
		return "", internal(err)
	}
	if from == nil {
		return "", status.Errorf(codes.NotFound, "the source %q does not exist on node %s", id, s.config.Node)
	}
	if req.GetCapacityRange().GetRequiredBytes() == 0 {
		want.Size = from.Size
	}
	if want.Size < from.Size {
		return "", status.Errorf(codes.OutOfRange, "the source has %d bytes, the copy would have %d", from.Size, want.Size)
	}
	if from.Backing != backingImage || want.Backing != backingImage {
		return "", status.Error(codes.InvalidArgument, "only volumes with backing image can be copied")
	}
	want.FSType, want.Formatted = from.FSType, from.Formatted
	return s.disk.path(kind, id), nil
}

// sourceOf names a copy's source in its record.
func sourceOf(source *csipb.VolumeContentSource) string {
	switch {
	case source.GetSnapshot() != nil:
		return "snapshot/" + source.GetSnapshot().GetSnapshotId()
	case source.GetVolume() != nil:
		return "volume/" + source.GetVolume().GetVolumeId()
	}
	return ""
}

// room refuses a volume that the disk could not hold, together with what the
// others may still fill, and one whose size could not be enforced.
func (s *Server) room(want *record) error {
	if want.Backing == backingImage {
		if err := enforceable(want.FSType); err != nil {
			return status.Errorf(codes.FailedPrecondition,
				"node %s cannot limit the size of volumes: %v; or use a StorageClass with the parameter backing: directory, whose volumes have no limit", s.config.Node, err)
		}
	}
	free, err := s.free()
	if err != nil {
		return internal(err)
	}
	if want.Size > free {
		return status.Errorf(codes.ResourceExhausted, "node %s has %d bytes left for volumes, %d are asked for", s.config.Node, free, want.Size)
	}
	return nil
}

func enforceable(fsType string) error {
	if err := loop.Available(); err != nil {
		return err
	}
	return disk.Tools(fsType)
}

func (s *Server) free() (int64, error) {
	space, err := mount.Free(s.config.Dir)
	if err != nil {
		return 0, err
	}
	promised, err := s.disk.promised()
	if err != nil {
		return 0, err
	}
	return max(0, int64(space.Available)-promised), nil //nolint:gosec // disks are smaller than 2^63
}

// fill makes a volume's content in dir.
func (s *Server) fill(ctx context.Context, dir string, want *record, origin string, req *csipb.CreateVolumeRequest) error {
	if want.Backing == backingDirectory {
		return os.Mkdir(filepath.Join(dir, treeName), 0o777)
	}
	image := filepath.Join(dir, imageName)
	if origin != "" {
		if err := s.copyImage(origin, image); err != nil {
			return err
		}
	}
	f, err := os.OpenFile(image, os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	err = f.Truncate(want.Size)
	if e := f.Close(); err == nil {
		err = e
	}
	if err != nil || want.Formatted || wantsBlock(req.GetVolumeCapabilities()) {
		return err
	}
	if err := disk.Format(ctx, image, want.FSType); err != nil {
		return fmt.Errorf("make the file system: %w", err)
	}
	want.Formatted = true
	return nil
}

// copyImage copies the image of a volume or snapshot, as it is at one moment.
func (s *Server) copyImage(origin, target string) error {
	image := filepath.Join(origin, imageName)
	thaw, err := freeze(image)
	if err != nil {
		return err
	}
	err = disk.Clone(image, target)
	if e := thaw(); err == nil {
		err = e
	}
	return err
}

// DeleteVolume implements csi.ControllerServer.
func (s *Server) DeleteVolume(_ context.Context, req *csipb.DeleteVolumeRequest) (*csipb.DeleteVolumeResponse, error) {
	id := req.GetVolumeId()
	if id == "" {
		return nil, status.Error(codes.InvalidArgument, "the volume has no id")
	}
	defer s.hold(id)()
	r, err := s.disk.get(volumesDir, id)
	if err != nil {
		return nil, internal(err)
	}
	if r == nil {
		return &csipb.DeleteVolumeResponse{}, nil
	}
	if r.Backing == backingImage {
		devices, err := loop.Find(s.disk.path(volumesDir, id, imageName))
		if err != nil {
			return nil, internal(err)
		}
		if len(devices) > 0 {
			return nil, status.Errorf(codes.FailedPrecondition, "volume %s is in use on node %s (%s)", id, s.config.Node, devices[0])
		}
	}
	if err := s.disk.remove(volumesDir, id); err != nil {
		return nil, internal(err)
	}
	s.config.Log.Info("volume deleted", base.KeyName, id)
	return &csipb.DeleteVolumeResponse{}, nil
}

// ControllerExpandVolume implements csi.ControllerServer.
func (s *Server) ControllerExpandVolume(_ context.Context, req *csipb.ControllerExpandVolumeRequest) (*csipb.ControllerExpandVolumeResponse, error) {
	if req.GetVolumeId() == "" {
		return nil, status.Error(codes.InvalidArgument, "the volume has no id")
	}
	if req.GetCapacityRange() == nil {
		return nil, status.Error(codes.InvalidArgument, "no size is asked for")
	}
	defer s.hold(req.GetVolumeId())()
	r, err := s.volume(req.GetVolumeId())
	if err != nil {
		return nil, err
	}
	size := (req.GetCapacityRange().GetRequiredBytes() + block - 1) / block * block
	if limit := req.GetCapacityRange().GetLimitBytes(); limit > 0 && size > limit {
		return nil, status.Errorf(codes.OutOfRange, "%d bytes are more than the limit of %d", size, limit)
	}
	asDevice := req.GetVolumeCapability().GetBlock() != nil
	if size > r.Size {
		if r.Backing == backingImage {
			free, err := s.free()
			if err != nil {
				return nil, internal(err)
			}
			if size-r.Size > free {
				return nil, status.Errorf(codes.ResourceExhausted, "node %s has %d bytes left for volumes, %d more are asked for", s.config.Node, free, size-r.Size)
			}
			if err := os.Truncate(s.disk.path(volumesDir, r.id, imageName), size); err != nil {
				return nil, internal(err)
			}
		}
		r.Size = size
		if err := s.disk.update(volumesDir, r); err != nil {
			return nil, internal(err)
		}
	}
	if r.Backing == backingImage {
		// Whoever has the device open sees its new size at once.
		if err := growDevices(s.disk.path(volumesDir, r.id, imageName)); err != nil {
			return nil, internal(err)
		}
	}
	return &csipb.ControllerExpandVolumeResponse{CapacityBytes: r.Size, NodeExpansionRequired: !asDevice && r.Backing == backingImage}, nil
}

func growDevices(image string) error {
	devices, err := loop.Find(image)
	if err != nil {
		return err
	}
	for _, d := range devices {
		if err := loop.Grow(d); err != nil {
			return err
		}
	}
	return nil
}
