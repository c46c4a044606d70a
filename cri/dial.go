package cri

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// Dial connects to a runtime's socket, "unix:///run/containerd/containerd.sock"
// or a plain path, and asks for its version, so that a wrong endpoint is found
// out at once. The closer ends the connection.
func Dial(ctx context.Context, endpoint string) (Runtime, Images, io.Closer, error) {
	target := endpoint
	if strings.HasPrefix(endpoint, "/") {
		target = "unix://" + endpoint
	}
	if !strings.HasPrefix(target, "unix:") {
		return nil, nil, nil, fmt.Errorf("container runtime endpoint %q: want unix:///path or an absolute path", endpoint)
	}
	conn, err := grpc.NewClient(target,
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithAuthority("localhost"),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxMessage), grpc.MaxCallSendMsgSize(maxMessage)))
	if err != nil {
		return nil, nil, nil, fmt.Errorf("container runtime endpoint %q: %w", endpoint, err)
	}
	r := &runtimeClient{c: runtimeapi.NewRuntimeServiceClient(conn)}
	version, err := r.Version(ctx, &runtimeapi.VersionRequest{})
	if err != nil {
		return nil, nil, nil, errors.Join(fmt.Errorf("container runtime endpoint %q: %w", endpoint, err), conn.Close())
	}
	r.sendsHeader = version.GetRuntimeName() == "periplus"
	return r, &imageClient{runtimeapi.NewImageServiceClient(conn)}, conn, nil
}

type runtimeClient struct {
	c runtimeapi.RuntimeServiceClient
	// sendsHeader is set when the server answers the opening of an event stream
	// at once. Others say nothing before the first event.
	sendsHeader bool
}

type imageClient struct {
	c runtimeapi.ImageServiceClient
}

var (
	_ Runtime = (*runtimeClient)(nil)
	_ Images  = (*imageClient)(nil)
)

// Events implements Runtime.
func (r *runtimeClient) Events(ctx context.Context, started func(), handle func(*runtimeapi.ContainerEventResponse)) error {
	stream, err := r.c.GetContainerEvents(ctx, &runtimeapi.GetEventsRequest{})
	if err != nil {
		return ended(ctx, err)
	}
	if r.sendsHeader {
		if _, err := stream.Header(); err != nil {
			return ended(ctx, err)
		}
	}
	if started != nil {
		started()
	}
	for {
		e, err := stream.Recv()
		if err != nil {
			return ended(ctx, err)
		}
		handle(e)
	}
}

func ended(ctx context.Context, err error) error {
	if ctx.Err() != nil || status.Code(err) == codes.Canceled {
		return nil
	}
	return err
}
