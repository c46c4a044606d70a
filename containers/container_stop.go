package containers

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/periplus/periplus/containers/monitor"
	"github.com/periplus/periplus/linux/cgroup"
)

// StopContainer sends the stop signal, waits for at most the timeout, kills.
// Stopping what has ended or is gone is no error.
func (r *Runtime) StopContainer(ctx context.Context, req *runtimeapi.StopContainerRequest) (*runtimeapi.StopContainerResponse, error) {
	if err := r.wait(ctx); err != nil {
		return nil, err
	}
	c, err := r.container(req.GetContainerId())
	if err != nil {
		return &runtimeapi.StopContainerResponse{}, nil
	}
	if err := r.stopContainer(ctx, c, time.Duration(req.GetTimeout())*time.Second); err != nil {
		return nil, err
	}
	return &runtimeapi.StopContainerResponse{}, nil
}

// stopContainer returns when the container has ended and freed its cgroup.
func (r *Runtime) stopContainer(ctx context.Context, c *container, timeout time.Duration) error {
	if state, _ := c.snapshotState(); state == runtimeapi.ContainerState_CONTAINER_CREATED {
		// A start that is under way comes first; one that never came needs nothing.
		c.op.Lock()
		c.op.Unlock() //nolint:staticcheck // only waited for
	}
	if state, _ := c.snapshotState(); state != runtimeapi.ContainerState_CONTAINER_RUNNING {
		return nil
	}
	if timeout > 0 {
		if err := r.signal(ctx, c, c.rec.StopSignal); err != nil {
			return err
		}
		timer := time.NewTimer(timeout)
		defer timer.Stop()
		select {
		case <-c.exited:
			return nil
		case <-timer.C:
		case <-ctx.Done():
			return fmt.Errorf("wait for container %q to stop: %w", c.rec.ID, ctx.Err())
		}
	}
	if err := r.signal(ctx, c, syscall.SIGKILL); err != nil {
		return err
	}
	if opts := c.config.GetLinux().GetSecurityContext().GetNamespaceOptions(); opts.GetPid() != runtimeapi.NamespaceMode_CONTAINER {
		// In a PID namespace of others its children outlive the first process.
		cgroup.Kill(c.rec.CgroupPath)
	}
	select {
	case <-c.exited:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("wait for container %q to be killed: %w", c.rec.ID, ctx.Err())
	}
}

func (r *Runtime) signal(ctx context.Context, c *container, sig syscall.Signal) error {
	r.monitor.wait(ctx)
	err := r.client.Signal(ctx, c.rec.ID, sig)
	if errors.Is(err, monitor.ErrNoContainer) {
		return nil // its end is on the way
	}
	if err != nil {
		return fmt.Errorf("send signal %d to container %q: %w", sig, c.rec.ID, err)
	}
	return nil
}

// RemoveContainer removes a container, killing it first if it runs. Removing
// what is gone is no error.
func (r *Runtime) RemoveContainer(ctx context.Context, req *runtimeapi.RemoveContainerRequest) (*runtimeapi.RemoveContainerResponse, error) {
	if err := r.wait(ctx); err != nil {
		return nil, err
	}
	c, err := r.container(req.GetContainerId())
	if err != nil {
		return &runtimeapi.RemoveContainerResponse{}, nil
	}
	if err := r.removeContainer(ctx, c); err != nil {
		return nil, status.Errorf(codes.Unknown, "failed to remove container %q: %v", c.rec.ID, err)
	}
	return &runtimeapi.RemoveContainerResponse{}, nil
}

func (r *Runtime) removeContainer(ctx context.Context, c *container) error {
	if err := r.stopContainer(ctx, c, 0); err != nil {
		return err
	}
	c.op.Lock()
	defer c.op.Unlock()
	id := c.rec.ID
	r.mu.Lock()
	_, present := r.containers[id]
	r.mu.Unlock()
	if !present {
		return nil
	}
	if state, _ := c.snapshotState(); state == runtimeapi.ContainerState_CONTAINER_RUNNING {
		return errors.New("it was started meanwhile")
	}
	r.monitor.wait(ctx)
	if err := r.client.Forget(ctx, id); err != nil && !errors.Is(err, monitor.ErrNoContainer) {
		return err
	}
	r.removeFiles(ctx, id, c.rec.Volumes)
	r.mu.Lock()
	delete(r.containers, id)
	if !c.rec.Pause {
		delete(r.names, containerName(c.rec.SandboxID, c.config))
	}
	r.mu.Unlock()
	r.usage.forget(id)
	if !c.rec.Pause {
		r.emit(c.rec.SandboxID, id, runtimeapi.ContainerEventType_CONTAINER_DELETED_EVENT)
	}
	return nil
}
