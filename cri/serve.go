package cri

import (
	"context"
	"net"

	"google.golang.org/grpc"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// maxMessage is the largest message of the CRI, as the kubelet has it.
const maxMessage = 16 << 20

// Serve offers an implementation on a listener until ctx ends, for crictl and
// other kubelets. RPCs that Runtime and Images do not have answer Unimplemented.
func Serve(ctx context.Context, l net.Listener, r Runtime, i Images) error {
	s := grpc.NewServer(grpc.MaxRecvMsgSize(maxMessage), grpc.MaxSendMsgSize(maxMessage))
	runtimeapi.RegisterRuntimeServiceServer(s, &runtimeServer{Runtime: r})
	runtimeapi.RegisterImageServiceServer(s, &imageServer{Images: i})
	// Event streams last for ever, so there is nothing to be gained by waiting.
	defer context.AfterFunc(ctx, s.Stop)()
	err := s.Serve(l)
	if ctx.Err() != nil {
		return nil
	}
	return err
}

type (
	// Embedded one level deeper than Runtime and Images, whose methods then win.
	noRuntime struct {
		runtimeapi.UnimplementedRuntimeServiceServer
	}
	noImages struct {
		runtimeapi.UnimplementedImageServiceServer
	}

	runtimeServer struct {
		Runtime
		noRuntime
	}
	imageServer struct {
		Images
		noImages
	}
)

var (
	_ runtimeapi.RuntimeServiceServer = (*runtimeServer)(nil)
	_ runtimeapi.ImageServiceServer   = (*imageServer)(nil)
)

// GetContainerEvents is the stream of Runtime.Events.
func (s *runtimeServer) GetContainerEvents(_ *runtimeapi.GetEventsRequest, stream grpc.ServerStreamingServer[runtimeapi.ContainerEventResponse]) error {
	ctx, cancel := context.WithCancelCause(stream.Context())
	defer cancel(nil)
	// The header tells the client that no event can be missed from here on.
	started := func() { _ = stream.SendHeader(nil) }
	err := s.Events(ctx, started, func(e *runtimeapi.ContainerEventResponse) {
		if err := stream.Send(e); err != nil {
			cancel(err)
		}
	})
	if err == nil {
		err = context.Cause(ctx)
	}
	return err
}
