package stream

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"time"

	"k8s.io/cri-streaming/pkg/streaming"
)

// A Streamer does what clients ask for; the package containers implements it.
type Streamer = streaming.Runtime

// Server hands out URLs and serves them.
type Server struct {
	server streaming.Server
	http   *http.Server
	l      net.Listener
}

// Listen opens the server on a loopback address, "127.0.0.1:0" for any port.
func Listen(address string, s Streamer) (*Server, error) {
	host, err := netip.ParseAddrPort(address)
	if err != nil || !host.Addr().IsLoopback() {
		return nil, fmt.Errorf("stream address %q: want a loopback address with port, such as 127.0.0.1:0", address)
	}
	l, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", address)
	if err != nil {
		return nil, err
	}
	config := streaming.DefaultConfig
	config.Addr = l.Addr().String()
	config.BaseURL = &url.URL{Scheme: "http", Host: config.Addr, Path: "/"}
	server, err := streaming.NewServer(config, s)
	if err != nil {
		l.Close()
		return nil, err
	}
	return &Server{
		server: server, l: l,
		http: &http.Server{
			Handler:           &translator{next: server, host: config.Addr, transport: &http.Transport{}},
			ReadHeaderTimeout: 30 * time.Second,
		},
	}, nil
}

// Run serves until ctx ends; open streams are cut off then.
func (s *Server) Run(ctx context.Context) error {
	defer context.AfterFunc(ctx, func() { s.http.Close() })()
	err := s.http.Serve(s.l)
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}

// Close ends the server without Run having been called.
func (s *Server) Close() error {
	return errors.Join(s.http.Close(), ignoreClosed(s.l.Close()))
}

func ignoreClosed(err error) error {
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}
