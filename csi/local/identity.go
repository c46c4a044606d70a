package local

import (
	"context"
	"slices"

	csipb "github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/periplus/periplus/linux/process"
)

// GetPluginInfo implements csi.IdentityServer.
func (s *Server) GetPluginInfo(context.Context, *csipb.GetPluginInfoRequest) (*csipb.GetPluginInfoResponse, error) {
	return &csipb.GetPluginInfoResponse{Name: Name, VendorVersion: s.config.Version}, nil
}

// GetPluginCapabilities implements csi.IdentityServer.
func (s *Server) GetPluginCapabilities(context.Context, *csipb.GetPluginCapabilitiesRequest) (*csipb.GetPluginCapabilitiesResponse, error) {
	service := func(t csipb.PluginCapability_Service_Type) *csipb.PluginCapability {
		return &csipb.PluginCapability{Type: &csipb.PluginCapability_Service_{Service: &csipb.PluginCapability_Service{Type: t}}}
	}
	expansion := csipb.PluginCapability_VolumeExpansion_OFFLINE
	if growsMounted() {
		expansion = csipb.PluginCapability_VolumeExpansion_ONLINE
	}
	return &csipb.GetPluginCapabilitiesResponse{Capabilities: []*csipb.PluginCapability{
		service(csipb.PluginCapability_Service_CONTROLLER_SERVICE),
		service(csipb.PluginCapability_Service_VOLUME_ACCESSIBILITY_CONSTRAINTS),
		{Type: &csipb.PluginCapability_VolumeExpansion_{VolumeExpansion: &csipb.PluginCapability_VolumeExpansion{Type: expansion}}},
	}}, nil
}

// Probe implements csi.IdentityServer.
func (s *Server) Probe(context.Context, *csipb.ProbeRequest) (*csipb.ProbeResponse, error) {
	return &csipb.ProbeResponse{Ready: wrapperspb.Bool(true)}, nil
}

// growsMounted reports whether a file system can grow while it is mounted: ext4
// wants CAP_SYS_RESOURCE for that, which containers often lack. Without it a file
// system grows when it is staged the next time.
func growsMounted() bool { return slices.Contains(process.Capabilities(), "CAP_SYS_RESOURCE") }
