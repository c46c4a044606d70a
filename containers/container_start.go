package containers

import (
	"context"
	"fmt"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/periplus/periplus/base"
	"github.com/periplus/periplus/containers/monitor"
	"github.com/periplus/periplus/linux/cgroup"
)

// StartContainer runs a created container. A failure leaves it exited with
// reason StartError, code 128 and what the OCI runtime said.
func (r *Runtime) StartContainer(ctx context.Context, req *runtimeapi.StartContainerRequest) (*runtimeapi.StartContainerResponse, error) {
	if err := r.wait(ctx); err != nil {
		return nil, err
	}
	c, err := r.container(req.GetContainerId())
	if err != nil {
		return nil, err
	}
	s, err := r.sandbox(c.rec.SandboxID)
	if err != nil {
		return nil, err
	}
	if s.phase() != phaseReady {
		return nil, status.Errorf(codes.FailedPrecondition, "sandbox container %q is not running", s.rec.ID)
	}
	if err := r.startContainer(ctx, c); err != nil {
		return nil, err
	}
	return &runtimeapi.StartContainerResponse{}, nil
}

func (r *Runtime) startContainer(ctx context.Context, c *container) error {
	c.op.Lock()
	defer c.op.Unlock()
	c.mu.Lock()
	if c.state != runtimeapi.ContainerState_CONTAINER_CREATED {
		state := c.state
		c.mu.Unlock()
		return status.Errorf(codes.FailedPrecondition, "container %q is in %s state", c.rec.ID, state)
	}
	c.starting = true
	c.mu.Unlock()
	// A caller that loses patience must not leave the outcome unknown: the
	// monitor bounds the time.
	started, err := r.launch(context.WithoutCancel(ctx), c)
	if err != nil {
		err = fmt.Errorf("OCI runtime create failed: %w", explain(err))
		r.startFailed(c, err)
		return status.Error(codes.Unknown, err.Error())
	}
	c.mu.Lock()
	c.starting = false
	c.runningLocked(started)
	early := c.early
	if early == nil {
		early = started.Exit
	}
	c.mu.Unlock()
	if !c.rec.Pause {
		r.emit(c.rec.SandboxID, c.rec.ID, runtimeapi.ContainerEventType_CONTAINER_STARTED_EVENT)
	}
	if early != nil {
		c.mu.Lock()
		r.endLocked(c, *early)
		c.mu.Unlock()
	}
	return nil
}

func (r *Runtime) launch(ctx context.Context, c *container) (monitor.Container, error) {
	if r.ociErr != nil {
		return monitor.Container{}, r.ociErr
	}
	if err := r.givePipes(c); err != nil {
		return monitor.Container{}, err
	}
	r.monitor.wait(ctx)
	return r.client.Start(ctx, monitor.StartRequest{
		ID: c.rec.ID, Dir: r.containerDir(c.rec.ID), OCI: r.oci, LogPath: c.rec.LogPath,
		TTY: c.config.GetTty(), Stdin: c.config.GetStdin(), StdinOnce: c.config.GetStdinOnce(),
		OOMFile: cgroup.OOMFile(c.rec.CgroupPath),
	})
}

func (r *Runtime) startFailed(c *container, err error) {
	r.freeCgroup(c.rec.ID, c.rec.CgroupPath)
	c.mu.Lock()
	c.starting = false
	f := failure{At: time.Now(), Message: err.Error()}
	c.rec.Failure = &f
	c.failLocked(f)
	c.mu.Unlock()
	if err := c.save(r.containerDir(c.rec.ID)); err != nil {
		r.log.Warn("cannot record a failed start", base.KeyID, c.rec.ID, base.KeyError, err)
	}
	if !c.rec.Pause {
		r.emit(c.rec.SandboxID, c.rec.ID, runtimeapi.ContainerEventType_CONTAINER_STOPPED_EVENT)
	}
}
