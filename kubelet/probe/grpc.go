package probe

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/credentials/insecure"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"
	corev1 "k8s.io/api/core/v1"
)

// grpcHealth succeeds when grpc.health.v1.Health/Check answers SERVING in time.
func grpcHealth(ctx context.Context, c *container, action *corev1.GRPCAction, limit time.Duration) (Result, string, error) {
	service := ""
	if action.Service != nil {
		service = *action.Service
	}
	address := net.JoinHostPort(c.podIP, strconv.Itoa(int(action.Port)))
	conn, err := grpc.NewClient("passthrough:///"+address,
		grpc.WithUserAgent(userAgent),
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithNoProxy(),
		grpc.WithContextDialer(func(ctx context.Context, address string) (net.Conn, error) { return dial(ctx, "tcp", address) }),
	)
	if err != nil {
		return Failure, fmt.Sprintf("error: failed to connect service at %q: %+v", address, err), nil
	}
	defer conn.Close() //nolint:errcheck // the answer is known
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()

	if err := connect(limited, conn); err != nil {
		if ctx.Err() != nil {
			return Unknown, "", ctx.Err()
		}
		return Failure, fmt.Sprintf("timeout: failed to connect service %q within %v: %+v", address, limit, err), nil
	}
	response, err := healthv1.NewHealthClient(conn).Check(limited, &healthv1.HealthCheckRequest{Service: service})
	if err != nil {
		switch s, _ := status.FromError(err); s.Code() {
		case codes.Unimplemented:
			return Failure, "error: this server does not implement the grpc health protocol (grpc.health.v1.Health): " + s.Message(), nil
		case codes.DeadlineExceeded:
			return Failure, fmt.Sprintf("timeout: health rpc did not complete within %v", limit), nil
		}
		return Failure, fmt.Sprintf("error: health rpc probe failed: %+v", err), nil
	}
	if response.GetStatus() != healthv1.HealthCheckResponse_SERVING {
		return Failure, fmt.Sprintf("service unhealthy (responded with %q)", response.GetStatus()), nil
	}
	return Success, "service healthy", nil
}

// connect waits until the connection is up, through refusals, for as long as ctx
// allows: "not yet" and "never" look the same from here.
func connect(ctx context.Context, conn *grpc.ClientConn) error {
	conn.Connect()
	for {
		state := conn.GetState()
		switch state {
		case connectivity.Ready:
			return nil
		case connectivity.Shutdown:
			return errors.New("connection is shut down")
		case connectivity.Idle:
			conn.Connect()
		}
		if !conn.WaitForStateChange(ctx, state) {
			return ctx.Err()
		}
	}
}
