package containers

import (
	"context"
	"io"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/periplus/periplus/containers/stream"
)

// forward connects a stream to a port inside a sandbox.
func (r *Runtime) forward(ctx context.Context, sandboxID string, port int32, conn io.ReadWriteCloser) error {
	s, err := r.sandbox(sandboxID)
	if err != nil {
		return err
	}
	if s.phase() != phaseReady {
		return status.Errorf(codes.FailedPrecondition, "sandbox container %q is not running", s.rec.ID)
	}
	return stream.Forward(ctx, s.rec.Sandbox.Pins.Net, port, conn)
}
