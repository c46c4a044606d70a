package kubelettest

import (
	"context"
	"fmt"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// RunPodSandbox implements cri.Runtime.
func (r *Runtime) RunPodSandbox(_ context.Context, req *runtimeapi.RunPodSandboxRequest) (*runtimeapi.RunPodSandboxResponse, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.n++
	b := &box{id: fmt.Sprintf("box%d", r.n), config: req.Config, ready: true, created: time.Now().UnixNano() + int64(r.n)}
	if req.Config.GetLinux().GetSecurityContext().GetNamespaceOptions().GetNetwork() == runtimeapi.NamespaceMode_POD {
		b.ip = fmt.Sprintf("10.42.0.%d", r.n)
	}
	r.boxes[b.id] = b
	r.noteLocked("sandbox %s", req.Config.Metadata.Name)
	r.emitLocked(b.id, b.id, runtimeapi.ContainerEventType_CONTAINER_STARTED_EVENT)
	return &runtimeapi.RunPodSandboxResponse{PodSandboxId: b.id}, nil
}

// StopPodSandbox implements cri.Runtime.
func (r *Runtime) StopPodSandbox(_ context.Context, req *runtimeapi.StopPodSandboxRequest) (*runtimeapi.StopPodSandboxResponse, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if b := r.boxes[req.PodSandboxId]; b != nil && b.ready {
		for _, c := range r.containers {
			if c.box == b.id && c.state == runtimeapi.ContainerState_CONTAINER_RUNNING {
				r.exitLocked(c, 137)
			}
		}
		b.ready = false
		r.noteLocked("stop-sandbox %s", b.config.Metadata.Name)
		r.emitLocked(b.id, b.id, runtimeapi.ContainerEventType_CONTAINER_STOPPED_EVENT)
	}
	return &runtimeapi.StopPodSandboxResponse{}, nil
}

// RemovePodSandbox implements cri.Runtime.
func (r *Runtime) RemovePodSandbox(_ context.Context, req *runtimeapi.RemovePodSandboxRequest) (*runtimeapi.RemovePodSandboxResponse, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if b := r.boxes[req.PodSandboxId]; b != nil {
		delete(r.boxes, b.id)
		r.noteLocked("remove-sandbox %s", b.config.Metadata.Name)
	}
	return &runtimeapi.RemovePodSandboxResponse{}, nil
}

// PodSandboxStatus implements cri.Runtime.
func (r *Runtime) PodSandboxStatus(_ context.Context, req *runtimeapi.PodSandboxStatusRequest) (*runtimeapi.PodSandboxStatusResponse, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	b := r.boxes[req.PodSandboxId]
	if b == nil {
		return nil, notFound("sandbox", req.PodSandboxId)
	}
	return &runtimeapi.PodSandboxStatusResponse{Status: b.status()}, nil
}

// ListPodSandbox implements cri.Runtime.
func (r *Runtime) ListPodSandbox(_ context.Context, req *runtimeapi.ListPodSandboxRequest) (*runtimeapi.ListPodSandboxResponse, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := &runtimeapi.ListPodSandboxResponse{}
	for _, b := range r.boxes {
		if !matches(b.config.Labels, req.GetFilter().GetLabelSelector()) {
			continue
		}
		s := b.status()
		out.Items = append(out.Items, &runtimeapi.PodSandbox{Id: b.id, Metadata: s.Metadata, State: s.State, CreatedAt: b.created, Labels: clone(b.config.Labels)})
	}
	return out, nil
}

// CreateContainer implements cri.Runtime.
func (r *Runtime) CreateContainer(_ context.Context, req *runtimeapi.CreateContainerRequest) (*runtimeapi.CreateContainerResponse, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if b := r.boxes[req.PodSandboxId]; b == nil || !b.ready {
		return nil, notFound("sandbox", req.PodSandboxId)
	}
	r.n++
	c := &record{id: fmt.Sprintf("c%d", r.n), box: req.PodSandboxId, config: req.Config, created: time.Now().UnixNano() + int64(r.n)}
	r.containers[c.id] = c
	r.noteLocked("create %s", req.Config.Metadata.Name)
	r.emitLocked(c.id, c.box, runtimeapi.ContainerEventType_CONTAINER_CREATED_EVENT)
	return &runtimeapi.CreateContainerResponse{ContainerId: c.id}, nil
}

// StartContainer implements cri.Runtime.
func (r *Runtime) StartContainer(_ context.Context, req *runtimeapi.StartContainerRequest) (*runtimeapi.StartContainerResponse, error) {
	r.mu.Lock()
	c := r.containers[req.ContainerId]
	if c == nil {
		r.mu.Unlock()
		return nil, notFound("container", req.ContainerId)
	}
	if r.CannotStart {
		r.exitLocked(c, 128)
		c.reason = "StartError"
		r.mu.Unlock()
		return nil, status.Error(codes.Unknown, "no such program")
	}
	c.state, c.started = runtimeapi.ContainerState_CONTAINER_RUNNING, time.Now().UnixNano()
	r.noteLocked("start %s", c.config.Metadata.Name)
	r.emitLocked(c.id, c.box, runtimeapi.ContainerEventType_CONTAINER_STARTED_EVENT)
	f := r.OnStart
	r.mu.Unlock()
	if f != nil {
		f(r, c.id, c.config)
	}
	return &runtimeapi.StartContainerResponse{}, nil
}

// StopContainer implements cri.Runtime.
func (r *Runtime) StopContainer(ctx context.Context, req *runtimeapi.StopContainerRequest) (*runtimeapi.StopContainerResponse, error) {
	r.mu.Lock()
	c := r.containers[req.ContainerId]
	if c == nil {
		r.mu.Unlock()
		return nil, notFound("container", req.ContainerId)
	}
	r.noteLocked("stop %s %d", c.config.Metadata.Name, req.Timeout)
	hangs := r.StopHangs
	r.mu.Unlock()
	code := int32(0)
	if hangs {
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(time.Duration(req.Timeout) * time.Second):
			code = 137
		}
	}
	r.Exit(c.id, code)
	return &runtimeapi.StopContainerResponse{}, nil
}

// RemoveContainer implements cri.Runtime.
func (r *Runtime) RemoveContainer(_ context.Context, req *runtimeapi.RemoveContainerRequest) (*runtimeapi.RemoveContainerResponse, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if c := r.containers[req.ContainerId]; c != nil {
		delete(r.containers, c.id)
		r.noteLocked("remove %s", c.config.Metadata.Name)
	}
	return &runtimeapi.RemoveContainerResponse{}, nil
}

// ListContainers implements cri.Runtime.
func (r *Runtime) ListContainers(_ context.Context, req *runtimeapi.ListContainersRequest) (*runtimeapi.ListContainersResponse, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := &runtimeapi.ListContainersResponse{}
	for _, c := range r.containers {
		if f := req.GetFilter(); !matches(c.config.Labels, f.GetLabelSelector()) || f.GetState() != nil && f.GetState().State != c.state {
			continue
		}
		out.Containers = append(out.Containers, &runtimeapi.Container{Id: c.id, PodSandboxId: c.box, Metadata: c.config.Metadata,
			Image: c.config.Image, State: c.state, CreatedAt: c.created, Labels: clone(c.config.Labels), Annotations: clone(c.config.Annotations)})
	}
	return out, nil
}

// ContainerStatus implements cri.Runtime.
func (r *Runtime) ContainerStatus(_ context.Context, req *runtimeapi.ContainerStatusRequest) (*runtimeapi.ContainerStatusResponse, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	c := r.containers[req.ContainerId]
	if c == nil {
		return nil, notFound("container", req.ContainerId)
	}
	return &runtimeapi.ContainerStatusResponse{Status: &runtimeapi.ContainerStatus{
		Id: c.id, Metadata: c.config.Metadata, State: c.state, CreatedAt: c.created, StartedAt: c.started, FinishedAt: c.finished,
		ExitCode: c.code, Reason: c.reason, Image: c.config.Image, ImageRef: c.config.Image.Image,
		Labels: clone(c.config.Labels), Annotations: clone(c.config.Annotations), Mounts: c.config.Mounts, LogPath: c.config.LogPath,
		Resources: &runtimeapi.ContainerResources{Linux: c.config.GetLinux().GetResources()},
	}}, nil
}

// UpdateContainerResources implements cri.Runtime.
func (r *Runtime) UpdateContainerResources(_ context.Context, req *runtimeapi.UpdateContainerResourcesRequest) (*runtimeapi.UpdateContainerResourcesResponse, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	c := r.containers[req.ContainerId]
	if c == nil {
		return nil, notFound("container", req.ContainerId)
	}
	c.config.Linux.Resources = req.Linux
	r.noteLocked("resize %s", c.config.Metadata.Name)
	return &runtimeapi.UpdateContainerResourcesResponse{}, nil
}
