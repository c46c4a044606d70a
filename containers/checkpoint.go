package containers

import (
	"context"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// CheckpointContainer says why there are no checkpoints: the OCI runtimes that
// distributions build cannot make them, for want of CRIU.
func (r *Runtime) CheckpointContainer(ctx context.Context, req *runtimeapi.CheckpointContainerRequest) (*runtimeapi.CheckpointContainerResponse, error) {
	if err := r.wait(ctx); err != nil {
		return nil, err
	}
	if _, err := r.running(req.GetContainerId()); err != nil {
		return nil, err
	}
	return nil, status.Errorf(codes.Unimplemented, "method CheckpointContainer not implemented: this runtime makes no checkpoints")
}
