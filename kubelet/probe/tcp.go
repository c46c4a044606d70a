package probe

import (
	"context"
	"net"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// tcp succeeds when a connection can be made in time.
func tcp(ctx context.Context, c *container, action *corev1.TCPSocketAction, limit time.Duration) (Result, string, error) {
	n, err := port(c.spec, action.Port)
	if err != nil {
		return Unknown, "", err
	}
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	conn, err := dial(limited, "tcp", net.JoinHostPort(host(action.Host, c.podIP), strconv.Itoa(n)))
	if err != nil {
		return Failure, err.Error(), nil //nolint:nilerr // that is the answer
	}
	if err := conn.Close(); err != nil {
		return Success, err.Error(), nil //nolint:nilerr // it was open
	}
	return Success, "", nil
}
