package server

import (
	"context"
	"net/http"
)

// A Server is the kubelet's API.
type Server struct{ config Config }

// New returns a Server that listens once Run is called.
func New(c Config) (*Server, error) {
	if err := c.validate(); err != nil {
		return nil, err
	}
	return &Server{config: c}, nil
}

// Handler is the API without TLS, for tests and for other listeners; it finds
// client certificates in http.Request.TLS.
func (s *Server) Handler() http.Handler { return http.NotFoundHandler() }

// Run serves until ctx ends.
func (s *Server) Run(ctx context.Context) error { <-ctx.Done(); return nil }
