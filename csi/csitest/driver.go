package csitest

import (
	"context"
	"os"
	"slices"
	"strings"
	"sync"

	csipb "github.com/container-storage-interface/spec/lib/go/csi"

	"github.com/periplus/periplus/csi"
)

// A Driver can do everything: it stages, publishes and attaches. It mounts nothing.
type Driver struct {
	csipb.UnimplementedIdentityServer
	csipb.UnimplementedControllerServer
	csipb.UnimplementedNodeServer

	Name string
	// Topology of the node that it is on.
	Topology map[string]string
	// Fail, if not nil, decides which calls fail; it gets what Calls returns.
	Fail func(call string) error

	mu    sync.Mutex // guards calls
	calls []string
}

var _ csi.Server = (*Driver)(nil)

// Calls returns what was asked so far, each as "Method volume".
func (d *Driver) Calls() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.calls)
}

func (d *Driver) note(parts ...string) error {
	call := strings.Join(parts, " ")
	d.mu.Lock()
	d.calls = append(d.calls, call)
	d.mu.Unlock()
	if d.Fail != nil {
		return d.Fail(call)
	}
	return nil
}

// GetPluginInfo implements csi.Server.
func (d *Driver) GetPluginInfo(context.Context, *csipb.GetPluginInfoRequest) (*csipb.GetPluginInfoResponse, error) {
	return &csipb.GetPluginInfoResponse{Name: d.Name, VendorVersion: "1"}, nil
}

// GetPluginCapabilities implements csi.Server.
func (d *Driver) GetPluginCapabilities(context.Context, *csipb.GetPluginCapabilitiesRequest) (*csipb.GetPluginCapabilitiesResponse, error) {
	resp := &csipb.GetPluginCapabilitiesResponse{}
	for _, t := range []csipb.PluginCapability_Service_Type{csipb.PluginCapability_Service_CONTROLLER_SERVICE, csipb.PluginCapability_Service_VOLUME_ACCESSIBILITY_CONSTRAINTS} {
		resp.Capabilities = append(resp.Capabilities, &csipb.PluginCapability{Type: &csipb.PluginCapability_Service_{Service: &csipb.PluginCapability_Service{Type: t}}})
	}
	return resp, nil
}

// ControllerGetCapabilities implements csi.Server.
func (d *Driver) ControllerGetCapabilities(context.Context, *csipb.ControllerGetCapabilitiesRequest) (*csipb.ControllerGetCapabilitiesResponse, error) {
	resp := &csipb.ControllerGetCapabilitiesResponse{}
	for _, t := range []csipb.ControllerServiceCapability_RPC_Type{
		csipb.ControllerServiceCapability_RPC_CREATE_DELETE_VOLUME, csipb.ControllerServiceCapability_RPC_PUBLISH_UNPUBLISH_VOLUME, csipb.ControllerServiceCapability_RPC_EXPAND_VOLUME,
	} {
		resp.Capabilities = append(resp.Capabilities, &csipb.ControllerServiceCapability{Type: &csipb.ControllerServiceCapability_Rpc{Rpc: &csipb.ControllerServiceCapability_RPC{Type: t}}})
	}
	return resp, nil
}

// NodeGetCapabilities implements csi.Server.
func (d *Driver) NodeGetCapabilities(context.Context, *csipb.NodeGetCapabilitiesRequest) (*csipb.NodeGetCapabilitiesResponse, error) {
	resp := &csipb.NodeGetCapabilitiesResponse{}
	for _, t := range []csipb.NodeServiceCapability_RPC_Type{csipb.NodeServiceCapability_RPC_STAGE_UNSTAGE_VOLUME, csipb.NodeServiceCapability_RPC_EXPAND_VOLUME} {
		resp.Capabilities = append(resp.Capabilities, &csipb.NodeServiceCapability{Type: &csipb.NodeServiceCapability_Rpc{Rpc: &csipb.NodeServiceCapability_RPC{Type: t}}})
	}
	return resp, nil
}

// NodeGetInfo implements csi.Server.
func (d *Driver) NodeGetInfo(context.Context, *csipb.NodeGetInfoRequest) (*csipb.NodeGetInfoResponse, error) {
	return &csipb.NodeGetInfoResponse{NodeId: "id-of-node", MaxVolumesPerNode: 7, AccessibleTopology: &csipb.Topology{Segments: d.Topology}}, nil
}

// CreateVolume implements csi.Server; the identifier is "id-" and the name.
func (d *Driver) CreateVolume(_ context.Context, r *csipb.CreateVolumeRequest) (*csipb.CreateVolumeResponse, error) {
	if err := d.note("CreateVolume", r.GetName()); err != nil {
		return nil, err
	}
	return &csipb.CreateVolumeResponse{Volume: &csipb.Volume{
		VolumeId: "id-" + r.GetName(), CapacityBytes: r.GetCapacityRange().GetRequiredBytes(), VolumeContext: r.GetParameters(),
		AccessibleTopology: r.GetAccessibilityRequirements().GetRequisite(),
	}}, nil
}

// DeleteVolume implements csi.Server.
func (d *Driver) DeleteVolume(_ context.Context, r *csipb.DeleteVolumeRequest) (*csipb.DeleteVolumeResponse, error) {
	return &csipb.DeleteVolumeResponse{}, d.note("DeleteVolume", r.GetVolumeId())
}

// ControllerPublishVolume implements csi.Server.
func (d *Driver) ControllerPublishVolume(_ context.Context, r *csipb.ControllerPublishVolumeRequest) (*csipb.ControllerPublishVolumeResponse, error) {
	return &csipb.ControllerPublishVolumeResponse{PublishContext: map[string]string{"device": "/dev/of/" + r.GetVolumeId()}}, d.note("ControllerPublishVolume", r.GetVolumeId(), r.GetNodeId())
}

// ControllerUnpublishVolume implements csi.Server.
func (d *Driver) ControllerUnpublishVolume(_ context.Context, r *csipb.ControllerUnpublishVolumeRequest) (*csipb.ControllerUnpublishVolumeResponse, error) {
	return &csipb.ControllerUnpublishVolumeResponse{}, d.note("ControllerUnpublishVolume", r.GetVolumeId(), r.GetNodeId())
}

// ControllerExpandVolume implements csi.Server.
func (d *Driver) ControllerExpandVolume(_ context.Context, r *csipb.ControllerExpandVolumeRequest) (*csipb.ControllerExpandVolumeResponse, error) {
	return &csipb.ControllerExpandVolumeResponse{CapacityBytes: r.GetCapacityRange().GetRequiredBytes(), NodeExpansionRequired: true}, d.note("ControllerExpandVolume", r.GetVolumeId())
}

// NodeStageVolume implements csi.Server.
func (d *Driver) NodeStageVolume(_ context.Context, r *csipb.NodeStageVolumeRequest) (*csipb.NodeStageVolumeResponse, error) {
	return &csipb.NodeStageVolumeResponse{}, d.note("NodeStageVolume", r.GetVolumeId(), r.GetPublishContext()["device"])
}

// NodeUnstageVolume implements csi.Server.
func (d *Driver) NodeUnstageVolume(_ context.Context, r *csipb.NodeUnstageVolumeRequest) (*csipb.NodeUnstageVolumeResponse, error) {
	return &csipb.NodeUnstageVolumeResponse{}, d.note("NodeUnstageVolume", r.GetVolumeId())
}

// NodePublishVolume implements csi.Server: it makes the directory.
func (d *Driver) NodePublishVolume(_ context.Context, r *csipb.NodePublishVolumeRequest) (*csipb.NodePublishVolumeResponse, error) {
	if err := d.note("NodePublishVolume", r.GetVolumeId()); err != nil {
		return nil, err
	}
	return &csipb.NodePublishVolumeResponse{}, os.MkdirAll(r.GetTargetPath(), 0o750)
}

// NodeUnpublishVolume implements csi.Server.
func (d *Driver) NodeUnpublishVolume(_ context.Context, r *csipb.NodeUnpublishVolumeRequest) (*csipb.NodeUnpublishVolumeResponse, error) {
	return &csipb.NodeUnpublishVolumeResponse{}, d.note("NodeUnpublishVolume", r.GetVolumeId())
}

// NodeExpandVolume implements csi.Server.
func (d *Driver) NodeExpandVolume(_ context.Context, r *csipb.NodeExpandVolumeRequest) (*csipb.NodeExpandVolumeResponse, error) {
	return &csipb.NodeExpandVolumeResponse{}, d.note("NodeExpandVolume", r.GetVolumeId())
}
