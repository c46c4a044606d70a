package stream

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"

	"github.com/periplus/periplus/linux/namespace"
)

// Forward connects stream to a port on the loopback interface of a network
// namespace, the host's if path is empty, and copies until either side ends.
func Forward(ctx context.Context, netns string, port int32, stream io.ReadWriteCloser) error {
	defer stream.Close()
	var conn net.Conn
	dial := func() error {
		var d net.Dialer
		var err, err6 error
		// One literal address a call: the dialer then works on this very thread.
		if conn, err = d.DialContext(ctx, "tcp4", net.JoinHostPort("127.0.0.1", strconv.Itoa(int(port)))); err != nil {
			if conn, err6 = d.DialContext(ctx, "tcp6", net.JoinHostPort("::1", strconv.Itoa(int(port)))); err6 != nil {
				return fmt.Errorf("failed to connect to localhost:%d inside namespace %q: %w", port, netns, errors.Join(err, err6))
			}
		}
		return nil
	}
	var err error
	if netns == "" {
		err = dial()
	} else {
		err = namespace.InNet(netns, dial)
	}
	if err != nil {
		return err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	sent := make(chan error, 1)
	go func() {
		_, err := io.Copy(conn, stream)
		if tcp, ok := conn.(*net.TCPConn); ok {
			_ = tcp.CloseWrite()
		}
		sent <- err
	}()
	_, err = io.Copy(stream, conn)
	// The server has answered everything; ending both sides ends the other copy.
	conn.Close()
	stream.Close()
	if e := <-sent; err == nil && !errors.Is(e, net.ErrClosed) {
		err = e
	}
	return err
}
