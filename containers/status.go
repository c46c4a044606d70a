package containers

import (
	"context"
	"encoding/json"
	"net/netip"
	"path/filepath"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	wasmbin "github.com/periplus/periplus/containers/wasm/bin"
	"github.com/periplus/periplus/linux/cgroup"
	"github.com/periplus/periplus/linux/namespace"
)

// RuntimeName is what kubectl shows before "://" in a container's ID.
const RuntimeName = "periplus"

// Version names the runtime.
func (r *Runtime) Version(context.Context, *runtimeapi.VersionRequest) (*runtimeapi.VersionResponse, error) {
	return &runtimeapi.VersionResponse{
		Version: "0.1.0", RuntimeName: RuntimeName, RuntimeVersion: r.cfg.Version, RuntimeApiVersion: "v1",
	}, nil
}

func (r *Runtime) ociName() string { return filepath.Base(r.oci.Path) }

// Status says whether pods can be run, and if not, why.
func (r *Runtime) Status(ctx context.Context, req *runtimeapi.StatusRequest) (*runtimeapi.StatusResponse, error) {
	if err := r.wait(ctx); err != nil {
		return nil, err
	}
	ready := &runtimeapi.RuntimeCondition{Type: runtimeapi.RuntimeReady, Status: true}
	if r.ociErr != nil {
		ready.Status, ready.Reason, ready.Message = false, "OCIRuntimeMissing", r.ociErr.Error()
	} else if _, _, err := r.client.Hello(ctx); err != nil {
		ready.Status, ready.Reason, ready.Message = false, "MonitorNotRunning", err.Error()
	}
	network := &runtimeapi.RuntimeCondition{Type: runtimeapi.NetworkReady, Status: true}
	if err := r.cfg.Network.Status(ctx); err != nil {
		network.Status, network.Reason = false, "NetworkPluginNotReady"
		network.Message = "Network plugin returns error: " + err.Error()
	}
	features := &runtimeapi.RuntimeHandlerFeatures{
		RecursiveReadOnlyMounts: r.ociName() == "crun", UserNamespaces: namespace.UsersSupported() == nil,
	}
	resp := &runtimeapi.StatusResponse{
		Status:          &runtimeapi.RuntimeStatus{Conditions: []*runtimeapi.RuntimeCondition{ready, network}},
		RuntimeHandlers: []*runtimeapi.RuntimeHandler{{Name: "", Features: features}},
		Features:        &runtimeapi.RuntimeFeatures{SupplementalGroupsPolicy: true, MountOptions: true},
	}
	if r.ociErr == nil {
		resp.RuntimeHandlers = append(resp.RuntimeHandlers,
			&runtimeapi.RuntimeHandler{Name: r.ociName(), Features: features}, &runtimeapi.RuntimeHandler{Name: wasmbin.Handler, Features: features})
	}
	if req.GetVerbose() {
		b, err := json.Marshal(map[string]any{
			"stateDir": r.cfg.StateDir, "runDir": r.cfg.RunDir, "ociRuntime": r.oci.Path,
			"monitor": r.monitorPath, "cgroups": cgroup.Detect().String(), "network": r.cfg.Network.Name(),
		})
		if err != nil {
			return nil, err
		}
		resp.Info = map[string]string{"config": string(b)}
	}
	return resp, nil
}

// RuntimeConfig tells the kubelet which cgroup driver to use.
func (r *Runtime) RuntimeConfig(context.Context, *runtimeapi.RuntimeConfigRequest) (*runtimeapi.RuntimeConfigResponse, error) {
	return &runtimeapi.RuntimeConfigResponse{
		Linux: &runtimeapi.LinuxRuntimeConfiguration{CgroupDriver: runtimeapi.CgroupDriver_CGROUPFS},
	}, nil
}

// UpdateRuntimeConfig takes the node's pod ranges, one or two separated by a comma.
func (r *Runtime) UpdateRuntimeConfig(ctx context.Context, req *runtimeapi.UpdateRuntimeConfigRequest) (*runtimeapi.UpdateRuntimeConfigResponse, error) {
	cidrs := req.GetRuntimeConfig().GetNetworkConfig().GetPodCidr()
	if cidrs == "" {
		return &runtimeapi.UpdateRuntimeConfigResponse{}, nil
	}
	var ranges []netip.Prefix
	for s := range strings.SplitSeq(cidrs, ",") {
		p, err := netip.ParsePrefix(strings.TrimSpace(s))
		if err != nil {
			return nil, status.Errorf(codes.InvalidArgument, "pod_cidr %q: %v", cidrs, err)
		}
		ranges = append(ranges, p)
	}
	if err := r.cfg.Network.Configure(ctx, ranges); err != nil {
		return nil, err
	}
	return &runtimeapi.UpdateRuntimeConfigResponse{}, nil
}
