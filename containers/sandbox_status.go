package containers

import (
	"context"
	"encoding/json"
	"time"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// PodSandboxStatus returns the status of a sandbox with those of its containers.
func (r *Runtime) PodSandboxStatus(ctx context.Context, req *runtimeapi.PodSandboxStatusRequest) (*runtimeapi.PodSandboxStatusResponse, error) {
	if err := r.wait(ctx); err != nil {
		return nil, err
	}
	s, err := r.sandbox(req.GetPodSandboxId())
	if err != nil {
		return nil, err
	}
	resp := &runtimeapi.PodSandboxStatusResponse{
		Status:             s.status(),
		ContainersStatuses: r.statusesOf(s.rec.ID),
		Timestamp:          time.Now().UnixNano(),
	}
	if req.GetVerbose() {
		s.mu.Lock()
		b, err := json.Marshal(map[string]any{"sandbox": s.rec.Sandbox, "phase": s.rec.Phase, "config": s.config})
		s.mu.Unlock()
		if err == nil {
			resp.Info = map[string]string{"info": string(b)}
		}
	}
	return resp, nil
}

func (s *podSandbox) state() runtimeapi.PodSandboxState {
	if s.phase() == phaseReady {
		return runtimeapi.PodSandboxState_SANDBOX_READY
	}
	return runtimeapi.PodSandboxState_SANDBOX_NOTREADY
}

func (s *podSandbox) status() *runtimeapi.PodSandboxStatus {
	network := &runtimeapi.PodSandboxNetworkStatus{}
	if state := s.phase(); state == phaseReady {
		for i, a := range s.rec.Sandbox.Addresses {
			if i == 0 {
				network.Ip = a.String()
				continue
			}
			network.AdditionalIps = append(network.AdditionalIps, &runtimeapi.PodIP{Ip: a.String()})
		}
	}
	return &runtimeapi.PodSandboxStatus{
		Id: s.rec.ID, Metadata: s.config.GetMetadata(), State: s.state(), CreatedAt: s.rec.CreatedAt.UnixNano(),
		Network: network,
		Linux: &runtimeapi.LinuxPodSandboxStatus{Namespaces: &runtimeapi.Namespace{
			Options: s.config.GetLinux().GetSecurityContext().GetNamespaceOptions(),
		}},
		Labels: s.config.GetLabels(), Annotations: s.config.GetAnnotations(), RuntimeHandler: s.rec.Handler,
	}
}

func (r *Runtime) statusesOf(sandboxID string) []*runtimeapi.ContainerStatus {
	var list []*runtimeapi.ContainerStatus
	for _, c := range r.containersOf(sandboxID) {
		list = append(list, c.status())
	}
	return list
}

// ListPodSandbox lists sandboxes, those that are being made left out.
func (r *Runtime) ListPodSandbox(ctx context.Context, req *runtimeapi.ListPodSandboxRequest) (*runtimeapi.ListPodSandboxResponse, error) {
	if err := r.wait(ctx); err != nil {
		return nil, err
	}
	resp := &runtimeapi.ListPodSandboxResponse{}
	f := req.GetFilter()
	for _, s := range r.allSandboxes() {
		if s.phase() == phaseMaking || !matchID(f.GetId(), s.rec.ID) || !matchLabels(f.GetLabelSelector(), s.config.GetLabels()) {
			continue
		}
		state := s.state()
		if f.GetState() != nil && f.GetState().GetState() != state {
			continue
		}
		resp.Items = append(resp.Items, &runtimeapi.PodSandbox{
			Id: s.rec.ID, Metadata: s.config.GetMetadata(), State: state, CreatedAt: s.rec.CreatedAt.UnixNano(),
			Labels: s.config.GetLabels(), Annotations: s.config.GetAnnotations(), RuntimeHandler: s.rec.Handler,
		})
	}
	return resp, nil
}

// matchID takes a whole ID or its beginning; "" matches all.
func matchID(want, id string) bool { return len(want) <= len(id) && id[:len(want)] == want }

func matchLabels(want, have map[string]string) bool {
	for k, v := range want {
		if got, ok := have[k]; !ok || got != v {
			return false
		}
	}
	return true
}

// UpdatePodSandboxResources records nothing: the pod's cgroup is the kubelet's,
// and no OCI runtime of ours needs to know (KEP-5419 calls it best effort).
func (r *Runtime) UpdatePodSandboxResources(ctx context.Context, req *runtimeapi.UpdatePodSandboxResourcesRequest) (*runtimeapi.UpdatePodSandboxResourcesResponse, error) {
	if err := r.wait(ctx); err != nil {
		return nil, err
	}
	if _, err := r.sandbox(req.GetPodSandboxId()); err != nil {
		return nil, err
	}
	return &runtimeapi.UpdatePodSandboxResourcesResponse{}, nil
}
