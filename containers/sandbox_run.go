package containers

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/periplus/periplus/base"
	"github.com/periplus/periplus/cni"
	"github.com/periplus/periplus/containers/sandbox"
	wasmbin "github.com/periplus/periplus/containers/wasm/bin"
)

// knownHandler says whether a RuntimeClass may name the handler.
func (r *Runtime) knownHandler(name string) bool {
	return name == "" || name == r.ociName() || name == wasmbin.Handler
}

// RunPodSandbox makes a pod's namespaces and attaches them to the network.
func (r *Runtime) RunPodSandbox(ctx context.Context, req *runtimeapi.RunPodSandboxRequest) (*runtimeapi.RunPodSandboxResponse, error) {
	if err := r.wait(ctx); err != nil {
		return nil, err
	}
	config := req.GetConfig()
	if config.GetMetadata() == nil {
		return nil, status.Error(codes.InvalidArgument, "sandbox config must include metadata")
	}
	if !r.knownHandler(req.GetRuntimeHandler()) {
		return nil, status.Errorf(codes.InvalidArgument, "failed to get sandbox runtime: no runtime for %q is configured", req.GetRuntimeHandler())
	}
	id, name := newID(), sandboxName(config)
	if err := r.reserve(name, id); err != nil {
		return nil, err
	}
	s, err := r.planSandbox(id, req)
	if err != nil {
		r.release(name)
		return nil, err
	}
	s.op.Lock()
	defer s.op.Unlock()
	r.mu.Lock()
	r.sandboxes[id] = s
	r.mu.Unlock()
	if err := r.makeSandbox(ctx, s); err != nil {
		// The caller may be gone; what was made must go all the same.
		undo, cancel := context.WithTimeout(context.WithoutCancel(ctx), emptyTimeout)
		defer cancel()
		if undoErr := r.removeSandboxHeld(undo, s, 0); undoErr != nil {
			r.log.Warn("cannot remove a sandbox that failed", base.KeyID, id, base.KeyError, undoErr)
		}
		return nil, sandboxError(err)
	}
	r.emit(id, id, runtimeapi.ContainerEventType_CONTAINER_CREATED_EVENT)
	r.emit(id, id, runtimeapi.ContainerEventType_CONTAINER_STARTED_EVENT)
	return &runtimeapi.RunPodSandboxResponse{PodSandboxId: id}, nil
}

func sandboxError(err error) error {
	if errors.Is(err, cni.ErrNotReady) {
		return status.Error(codes.Unavailable, err.Error())
	}
	if s, ok := status.FromError(err); ok && s.Code() != codes.Unknown {
		return err
	}
	return status.Errorf(codes.Unknown, "failed to start sandbox: %v", err)
}

func (r *Runtime) planSandbox(id string, req *runtimeapi.RunPodSandboxRequest) (*podSandbox, error) {
	config := req.GetConfig()
	sb, err := sandbox.Plan(id, r.sandboxDir(id), r.cfg.RunDir, config)
	if err != nil {
		return nil, status.Error(codes.InvalidArgument, err.Error())
	}
	raw, err := proto.Marshal(config)
	if err != nil {
		return nil, err
	}
	pid := config.GetLinux().GetSecurityContext().GetNamespaceOptions().GetPid()
	return &podSandbox{config: config, rec: sandboxRecord{
		ID: id, Phase: phaseMaking, CreatedAt: time.Now(), Handler: req.GetRuntimeHandler(),
		Pause:  pid == runtimeapi.NamespaceMode_POD, // what the CRI means when it says nothing
		Config: raw, Sandbox: sb,
	}}, nil
}

func (r *Runtime) makeSandbox(ctx context.Context, s *podSandbox) error {
	dir := r.sandboxDir(s.rec.ID)
	if err := os.Mkdir(dir, 0o711); err != nil {
		return err
	}
	if err := s.save(dir); err != nil {
		return err
	}
	sb := s.rec.Sandbox
	if sb.User != nil {
		if err := r.letPass(); err != nil {
			return err
		}
		sb.User.Holder = []string{r.monitorPath, "pause"}
	}
	if err := sb.Make(ctx, r.cfg.Network, sb.Attachment(s.rec.ID, s.config), s.config); err != nil {
		return err
	}
	if s.rec.Pause {
		if err := r.startPause(ctx, s); err != nil {
			return fmt.Errorf("start the process that holds the shared PID namespace: %w", err)
		}
	}
	s.mu.Lock()
	s.rec.Phase = phaseReady
	s.mu.Unlock()
	return s.save(dir)
}
