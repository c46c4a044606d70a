package local

import (
	"context"
	"path/filepath"
	"time"

	csipb "github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/periplus/periplus/linux/disk"
	"github.com/periplus/periplus/linux/loop"
	"github.com/periplus/periplus/linux/mount"
)

// freeze holds the writes to the file system in an image while it is mounted, so
// that a copy of the image is one moment's.
func freeze(image string) (thaw func() error, err error) {
	nothing := func() error { return nil }
	devices, err := loop.Find(image)
	if err != nil || len(devices) == 0 {
		return nothing, err
	}
	points, err := mount.Of(devices[0])
	if err != nil || len(points) == 0 {
		return nothing, err
	}
	return disk.Freeze(points[0])
}

func snapshotOf(r *record) *csipb.Snapshot {
	return &csipb.Snapshot{
		SnapshotId: r.id, SourceVolumeId: r.Source, SizeBytes: r.Size, ReadyToUse: true, CreationTime: timestamppb.New(r.Made),
	}
}

// CreateSnapshot implements csi.ControllerServer.
func (s *Server) CreateSnapshot(_ context.Context, req *csipb.CreateSnapshotRequest) (*csipb.CreateSnapshotResponse, error) {
	if req.GetName() == "" || req.GetSourceVolumeId() == "" {
		return nil, status.Error(codes.InvalidArgument, "the snapshot has no name or no source")
	}
	id := idOf(req.GetName())
	defer s.hold("snapshot " + id)()
	have, err := s.disk.get(snapshotsDir, id)
	if err != nil {
		return nil, internal(err)
	}
	if have != nil {
		if have.Source != req.GetSourceVolumeId() {
			return nil, status.Errorf(codes.AlreadyExists, "snapshot %q exists of another volume, %s", req.GetName(), have.Source)
		}
		return &csipb.CreateSnapshotResponse{Snapshot: snapshotOf(have)}, nil
	}
	defer s.hold(req.GetSourceVolumeId())()
	from, err := s.volume(req.GetSourceVolumeId())
	if err != nil {
		return nil, err
	}
	if from.Backing != backingImage {
		return nil, status.Error(codes.FailedPrecondition, "only volumes with backing image have snapshots")
	}
	r := &record{Name: req.GetName(), id: id, Size: from.Size, Backing: backingImage, FSType: from.FSType, Formatted: from.Formatted, Source: from.id, Made: time.Now().UTC()}
	err = s.disk.create(snapshotsDir, r, func(dir string) error {
		return s.copyImage(s.disk.path(volumesDir, from.id), filepath.Join(dir, imageName))
	})
	if err != nil {
		return nil, internal(err)
	}
	return &csipb.CreateSnapshotResponse{Snapshot: snapshotOf(r)}, nil
}

// DeleteSnapshot implements csi.ControllerServer.
func (s *Server) DeleteSnapshot(_ context.Context, req *csipb.DeleteSnapshotRequest) (*csipb.DeleteSnapshotResponse, error) {
	id := req.GetSnapshotId()
	if id == "" {
		return nil, status.Error(codes.InvalidArgument, "the snapshot has no id")
	}
	defer s.hold("snapshot " + id)()
	if r, err := s.disk.get(snapshotsDir, id); err != nil || r == nil {
		return &csipb.DeleteSnapshotResponse{}, err
	}
	if err := s.disk.remove(snapshotsDir, id); err != nil {
		return nil, internal(err)
	}
	return &csipb.DeleteSnapshotResponse{}, nil
}

// ListSnapshots implements csi.ControllerServer.
func (s *Server) ListSnapshots(_ context.Context, req *csipb.ListSnapshotsRequest) (*csipb.ListSnapshotsResponse, error) {
	all, err := s.disk.list(snapshotsDir)
	if err != nil {
		return nil, internal(err)
	}
	var list []*record
	for _, r := range all {
		if (req.GetSnapshotId() == "" || r.id == req.GetSnapshotId()) && (req.GetSourceVolumeId() == "" || r.Source == req.GetSourceVolumeId()) {
			list = append(list, r)
		}
	}
	from, to, next, err := page(len(list), req.GetMaxEntries(), req.GetStartingToken())
	if err != nil {
		return nil, err
	}
	resp := &csipb.ListSnapshotsResponse{NextToken: next}
	for _, r := range list[from:to] {
		resp.Entries = append(resp.Entries, &csipb.ListSnapshotsResponse_Entry{Snapshot: snapshotOf(r)})
	}
	return resp, nil
}
