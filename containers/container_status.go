package containers

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/periplus/periplus/containers/monitor"
	"github.com/periplus/periplus/containers/oci"
)

// ContainerStatus returns a container's status.
func (r *Runtime) ContainerStatus(ctx context.Context, req *runtimeapi.ContainerStatusRequest) (*runtimeapi.ContainerStatusResponse, error) {
	if err := r.wait(ctx); err != nil {
		return nil, err
	}
	c, err := r.container(req.GetContainerId())
	if err != nil {
		return nil, err
	}
	resp := &runtimeapi.ContainerStatusResponse{Status: c.status()}
	if req.GetVerbose() {
		_, pid := c.snapshotState()
		spec, _ := os.ReadFile(filepath.Join(r.containerDir(c.rec.ID), "config.json"))
		info := map[string]any{"sandboxID": c.rec.SandboxID, "pid": pid, "config": c.config, "runtimeSpec": json.RawMessage(spec)}
		if b, err := json.Marshal(info); err == nil {
			resp.Info = map[string]string{"info": string(b)}
		}
	}
	return resp, nil
}

func (c *container) status() *runtimeapi.ContainerStatus {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := &runtimeapi.ContainerStatus{
		Id: c.rec.ID, Metadata: c.config.GetMetadata(), State: c.state, CreatedAt: c.rec.CreatedAt.UnixNano(),
		ExitCode: c.exitCode, Reason: c.reason, Message: c.message,
		Image:    &runtimeapi.ImageSpec{Image: c.rec.Image, UserSpecifiedImage: c.config.GetImage().GetUserSpecifiedImage()},
		ImageRef: c.rec.ImageRef, ImageId: c.rec.ImageID,
		Labels: c.config.GetLabels(), Annotations: c.config.GetAnnotations(), Mounts: c.config.GetMounts(),
		LogPath: c.rec.LogPath, Resources: &runtimeapi.ContainerResources{Linux: c.resources},
		StopSignal: criSignal(c.rec.StopSignal),
	}
	if !c.startedAt.IsZero() {
		s.StartedAt = c.startedAt.UnixNano()
	}
	if !c.finishedAt.IsZero() {
		s.FinishedAt = c.finishedAt.UnixNano()
	}
	if p := c.rec.Process; p != nil {
		user := &runtimeapi.LinuxContainerUser{Uid: int64(p.User.UID), Gid: int64(p.User.GID)}
		for _, g := range p.User.AdditionalGids {
			user.SupplementalGroups = append(user.SupplementalGroups, int64(g))
		}
		s.User = &runtimeapi.ContainerUser{Linux: user}
	}
	return s
}

// ListContainers lists containers.
func (r *Runtime) ListContainers(ctx context.Context, req *runtimeapi.ListContainersRequest) (*runtimeapi.ListContainersResponse, error) {
	if err := r.wait(ctx); err != nil {
		return nil, err
	}
	f := req.GetFilter()
	resp := &runtimeapi.ListContainersResponse{}
	for _, c := range r.allContainers() {
		if c.rec.Pause || !matchID(f.GetId(), c.rec.ID) || !matchID(f.GetPodSandboxId(), c.rec.SandboxID) ||
			!matchLabels(f.GetLabelSelector(), c.config.GetLabels()) {
			continue
		}
		state, _ := c.snapshotState()
		if f.GetState() != nil && f.GetState().GetState() != state {
			continue
		}
		resp.Containers = append(resp.Containers, &runtimeapi.Container{
			Id: c.rec.ID, PodSandboxId: c.rec.SandboxID, Metadata: c.config.GetMetadata(), Image: c.config.GetImage(),
			ImageRef: c.rec.ImageRef, ImageId: c.rec.ImageID, State: state, CreatedAt: c.rec.CreatedAt.UnixNano(),
			Labels: c.config.GetLabels(), Annotations: c.config.GetAnnotations(),
		})
	}
	return resp, nil
}

// UpdateContainerResources changes the limits of a container that is created or runs.
func (r *Runtime) UpdateContainerResources(ctx context.Context, req *runtimeapi.UpdateContainerResourcesRequest) (*runtimeapi.UpdateContainerResourcesResponse, error) {
	if err := r.wait(ctx); err != nil {
		return nil, err
	}
	c, err := r.container(req.GetContainerId())
	if err != nil {
		return nil, err
	}
	c.op.Lock()
	defer c.op.Unlock()
	state, _ := c.snapshotState()
	merged := oci.Merge(c.resources, req.GetLinux())
	switch state {
	case runtimeapi.ContainerState_CONTAINER_RUNNING:
		body, err := json.Marshal(oci.Update(merged, r.host))
		if err != nil {
			return nil, err
		}
		r.monitor.wait(ctx)
		err = r.client.OCI(ctx, monitor.OCIRequest{OCI: r.oci, Args: []string{"update", "--resources", "/dev/stdin", c.rec.ID}, Input: body})
		if err != nil {
			return nil, status.Errorf(codes.Unknown, "failed to update resources of container %q: %v", c.rec.ID, err)
		}
	case runtimeapi.ContainerState_CONTAINER_CREATED:
		if err := r.rewriteSpec(c, merged); err != nil {
			return nil, err
		}
	default:
		return nil, status.Errorf(codes.FailedPrecondition, "container %q is in %s state", c.rec.ID, state)
	}
	raw, err := proto.Marshal(merged)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	c.resources, c.rec.Resources = merged, raw
	c.mu.Unlock()
	return &runtimeapi.UpdateContainerResourcesResponse{}, c.save(r.containerDir(c.rec.ID))
}

// ReopenContainerLog makes a running container log to a new file at the same path.
func (r *Runtime) ReopenContainerLog(ctx context.Context, req *runtimeapi.ReopenContainerLogRequest) (*runtimeapi.ReopenContainerLogResponse, error) {
	if err := r.wait(ctx); err != nil {
		return nil, err
	}
	c, err := r.container(req.GetContainerId())
	if err != nil {
		return nil, err
	}
	if state, _ := c.snapshotState(); state != runtimeapi.ContainerState_CONTAINER_RUNNING {
		return nil, status.Errorf(codes.FailedPrecondition, "container is not running")
	}
	r.monitor.wait(ctx)
	if err := r.client.Reopen(ctx, c.rec.ID); err != nil {
		return nil, err
	}
	return &runtimeapi.ReopenContainerLogResponse{}, nil
}
