package containers

import (
	"context"
	"time"

	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// StopPodSandbox kills what still runs in the sandbox and takes it off the
// network. Stopping what is stopped or gone is no error.
func (r *Runtime) StopPodSandbox(ctx context.Context, req *runtimeapi.StopPodSandboxRequest) (*runtimeapi.StopPodSandboxResponse, error) {
	if err := r.wait(ctx); err != nil {
		return nil, err
	}
	s, err := r.sandbox(req.GetPodSandboxId())
	if err != nil {
		return &runtimeapi.StopPodSandboxResponse{}, nil
	}
	s.op.Lock()
	defer s.op.Unlock()
	if err := r.stopSandboxHeld(ctx, s, 0); err != nil {
		return nil, status.Errorf(codes.Unknown, "failed to stop sandbox %q: %v", s.rec.ID, err)
	}
	return &runtimeapi.StopPodSandboxResponse{}, nil
}

// RemovePodSandbox removes the sandbox with its containers. Removing what is
// gone is no error.
func (r *Runtime) RemovePodSandbox(ctx context.Context, req *runtimeapi.RemovePodSandboxRequest) (*runtimeapi.RemovePodSandboxResponse, error) {
	if err := r.wait(ctx); err != nil {
		return nil, err
	}
	s, err := r.sandbox(req.GetPodSandboxId())
	if err != nil {
		return &runtimeapi.RemovePodSandboxResponse{}, nil
	}
	if err := r.removeSandbox(ctx, s, 0); err != nil {
		return nil, status.Errorf(codes.Unknown, "failed to remove sandbox %q: %v", s.rec.ID, err)
	}
	return &runtimeapi.RemovePodSandboxResponse{}, nil
}

// stopSandboxHeld needs s.op. Containers get grace to end by themselves.
func (r *Runtime) stopSandboxHeld(ctx context.Context, s *podSandbox, grace time.Duration) error {
	group, gctx := errgroup.WithContext(ctx)
	for _, c := range r.containersOf(s.rec.ID) {
		group.Go(func() error { return r.stopContainer(gctx, c, grace) })
	}
	if err := group.Wait(); err != nil {
		return err
	}
	if pause := r.pauseOf(s); pause != nil {
		if err := r.stopContainer(ctx, pause, 0); err != nil {
			return err
		}
	}
	// The network wants the namespace alive and undisturbed: after the containers.
	sb := s.rec.Sandbox
	if err := sb.Destroy(ctx, r.cfg.Network, sb.Attachment(s.rec.ID, s.config)); err != nil {
		return err
	}
	s.mu.Lock()
	before := s.rec.Phase
	s.rec.Phase = phaseStopped
	s.mu.Unlock()
	if before == phaseStopped {
		return nil
	}
	if err := s.save(r.sandboxDir(s.rec.ID)); err != nil {
		return err
	}
	if before == phaseReady {
		r.emit(s.rec.ID, s.rec.ID, runtimeapi.ContainerEventType_CONTAINER_STOPPED_EVENT)
	}
	return nil
}

func (r *Runtime) removeSandbox(ctx context.Context, s *podSandbox, grace time.Duration) error {
	s.op.Lock()
	defer s.op.Unlock()
	return r.removeSandboxHeld(ctx, s, grace)
}

// removeSandboxHeld needs s.op.
func (r *Runtime) removeSandboxHeld(ctx context.Context, s *podSandbox, grace time.Duration) error {
	r.mu.Lock()
	_, present := r.sandboxes[s.rec.ID]
	r.mu.Unlock()
	if !present {
		return nil
	}
	half := s.phase() == phaseMaking
	if err := r.stopSandboxHeld(ctx, s, grace); err != nil {
		return err
	}
	for _, c := range r.containersOf(s.rec.ID) {
		if err := r.removeContainer(ctx, c); err != nil {
			return err
		}
	}
	if pause := r.pauseOf(s); pause != nil {
		if err := r.removeContainer(ctx, pause); err != nil {
			return err
		}
	}
	if err := s.rec.Sandbox.Remove(); err != nil {
		return err
	}
	var event *runtimeapi.ContainerEventResponse
	if !half {
		event = r.event(s.rec.ID, s.rec.ID, runtimeapi.ContainerEventType_CONTAINER_DELETED_EVENT)
	}
	r.mu.Lock()
	delete(r.sandboxes, s.rec.ID)
	delete(r.names, sandboxName(s.config))
	r.mu.Unlock()
	r.usage.forget(s.rec.ID)
	if event != nil {
		r.events.send(event)
	}
	return nil
}

// pauseOf returns the container that holds a sandbox's PID namespace, or nil.
func (r *Runtime) pauseOf(s *podSandbox) *container {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.containers[s.rec.ID]
}
