package local

import (
	"context"
	"strconv"

	csipb "github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// volume returns a record or NotFound.
func (s *Server) volume(id string) (*record, error) {
	r, err := s.disk.get(volumesDir, id)
	if err != nil {
		return nil, internal(err)
	}
	if r == nil {
		return nil, status.Errorf(codes.NotFound, "volume %q does not exist on node %s", id, s.config.Node)
	}
	return r, nil
}

func internal(err error) error { return status.Error(codes.Internal, err.Error()) }

// usable refuses what a volume of one node cannot be.
func usable(capabilities []*csipb.VolumeCapability) error {
	if len(capabilities) == 0 {
		return status.Error(codes.InvalidArgument, "no volume capabilities")
	}
	for _, c := range capabilities {
		if c.GetBlock() == nil && c.GetMount() == nil {
			return status.Error(codes.InvalidArgument, "the volume is to be neither a device nor mounted")
		}
		switch mode := c.GetAccessMode().GetMode(); mode {
		case csipb.VolumeCapability_AccessMode_SINGLE_NODE_WRITER, csipb.VolumeCapability_AccessMode_SINGLE_NODE_READER_ONLY,
			csipb.VolumeCapability_AccessMode_SINGLE_NODE_SINGLE_WRITER, csipb.VolumeCapability_AccessMode_SINGLE_NODE_MULTI_WRITER:
		case csipb.VolumeCapability_AccessMode_UNKNOWN:
			return status.Error(codes.InvalidArgument, "no access mode")
		default:
			return status.Errorf(codes.InvalidArgument, "access mode %s: a local volume can be used on one node only, with ReadWriteOnce or ReadWriteOncePod", mode)
		}
	}
	return nil
}

func wantsBlock(capabilities []*csipb.VolumeCapability) bool {
	for _, c := range capabilities {
		if c.GetBlock() != nil {
			return true
		}
	}
	return false
}

// here refuses a volume that must be on another node.
func (s *Server) here(r *csipb.TopologyRequirement) error {
	if len(r.GetRequisite()) == 0 {
		return nil
	}
	for _, t := range r.GetRequisite() {
		if node, ok := t.GetSegments()[TopologyKey]; !ok || node == s.config.Node {
			return nil
		}
	}
	return status.Errorf(codes.ResourceExhausted, "the volume must be on another node than %s", s.config.Node)
}

// ValidateVolumeCapabilities implements csi.ControllerServer.
func (s *Server) ValidateVolumeCapabilities(_ context.Context, req *csipb.ValidateVolumeCapabilitiesRequest) (*csipb.ValidateVolumeCapabilitiesResponse, error) {
	if req.GetVolumeId() == "" {
		return nil, status.Error(codes.InvalidArgument, "the volume has no id")
	}
	if len(req.GetVolumeCapabilities()) == 0 {
		return nil, status.Error(codes.InvalidArgument, "no volume capabilities")
	}
	if _, err := s.volume(req.GetVolumeId()); err != nil {
		return nil, err
	}
	if err := usable(req.GetVolumeCapabilities()); err != nil {
		return &csipb.ValidateVolumeCapabilitiesResponse{Message: status.Convert(err).Message()}, nil
	}
	return &csipb.ValidateVolumeCapabilitiesResponse{Confirmed: &csipb.ValidateVolumeCapabilitiesResponse_Confirmed{
		VolumeContext: req.GetVolumeContext(), VolumeCapabilities: req.GetVolumeCapabilities(), Parameters: req.GetParameters(),
	}}, nil
}

// page cuts a list as max_entries and the token of the page before say.
func page(length int, max int32, token string) (from, to int, next string, err error) {
	if token != "" {
		if from, err = strconv.Atoi(token); err != nil || from < 0 || from > length {
			return 0, 0, "", status.Errorf(codes.Aborted, "page token %q is not one of ours", token)
		}
	}
	to = length
	if max > 0 && from+int(max) < length {
		to = from + int(max)
		next = strconv.Itoa(to)
	}
	return from, to, next, nil
}

// ListVolumes implements csi.ControllerServer.
func (s *Server) ListVolumes(_ context.Context, req *csipb.ListVolumesRequest) (*csipb.ListVolumesResponse, error) {
	list, err := s.disk.list(volumesDir)
	if err != nil {
		return nil, internal(err)
	}
	from, to, next, err := page(len(list), req.GetMaxEntries(), req.GetStartingToken())
	if err != nil {
		return nil, err
	}
	resp := &csipb.ListVolumesResponse{NextToken: next}
	for _, r := range list[from:to] {
		resp.Entries = append(resp.Entries, &csipb.ListVolumesResponse_Entry{Volume: &csipb.Volume{
			VolumeId: r.id, CapacityBytes: r.Size, AccessibleTopology: s.topology(),
		}})
	}
	return resp, nil
}

// GetCapacity implements csi.ControllerServer.
func (s *Server) GetCapacity(_ context.Context, req *csipb.GetCapacityRequest) (*csipb.GetCapacityResponse, error) {
	if node, ok := req.GetAccessibleTopology().GetSegments()[TopologyKey]; ok && node != s.config.Node {
		return &csipb.GetCapacityResponse{}, nil
	}
	free, err := s.free()
	if err != nil {
		return nil, internal(err)
	}
	return &csipb.GetCapacityResponse{AvailableCapacity: free, MaximumVolumeSize: wrapperspb.Int64(free)}, nil
}
