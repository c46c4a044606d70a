package server

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/periplus/periplus/base"
)

// How long requests may take to end when the server does.
const graceful = 2 * time.Second

// A Server is the kubelet's API.
type Server struct {
	config Config
	routes http.Handler
}

// New returns a Server that listens once Run is called.
func New(c Config) (*Server, error) {
	if err := c.validate(); err != nil {
		return nil, err
	}
	s := &Server{config: c}
	s.routes = s.newRoutes()
	return s, nil
}

// Handler is the API without TLS, for tests and for other listeners; it finds
// client certificates in http.Request.TLS.
func (s *Server) Handler() http.Handler { return s.guard(s.routes) }

// Run serves until ctx ends.
func (s *Server) Run(ctx context.Context) error {
	listener := s.config.Listener
	if listener == nil {
		var lc net.ListenConfig
		var err error
		if listener, err = lc.Listen(ctx, "tcp", s.config.Address); err != nil {
			return fmt.Errorf("kubelet API: %w (another kubelet on this machine? choose another address)", err)
		}
	}
	server := &http.Server{
		Handler: s.Handler(),
		// Followed logs end when the server does.
		BaseContext:       func(net.Listener) context.Context { return ctx },
		ReadHeaderTimeout: 32 * time.Second,
		IdleTimeout:       90 * time.Second,
		MaxHeaderBytes:    64 << 10,
		ErrorLog:          slog.NewLogLogger(s.config.Log.Handler(), slog.LevelDebug),
		TLSConfig: &tls.Config{
			MinVersion:     tls.VersionTLS12,
			GetCertificate: s.config.Certificate,
			// Verified per request, so that authorities can change and a bearer token will do.
			ClientAuth: tls.RequestClientCert,
			NextProtos: []string{"h2", "http/1.1"},
		},
	}
	s.config.Log.Info("kubelet API is served", base.KeyAddress, listener.Addr().String())

	ended := make(chan error, 1)
	go func() { ended <- server.ServeTLS(listener, "", "") }()
	select {
	case err := <-ended:
		return fmt.Errorf("kubelet API: %w", err)
	case <-ctx.Done():
	}
	stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), graceful)
	defer cancel()
	err := server.Shutdown(stop)
	if errors.Is(err, context.DeadlineExceeded) {
		err = server.Close()
	}
	<-ended //nolint:errcheck // http.ErrServerClosed
	return err
}
