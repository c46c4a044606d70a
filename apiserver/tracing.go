package apiserver

import (
	"context"
	"time"

	"github.com/periplus/periplus/apiserver/spans"
	"github.com/periplus/periplus/base"
)

// traces begins to trace requests, if that is configured.
func (s *Server) traces() (err error) {
	if s.tracer, err = spans.New(context.Background(), s.config.Tracing, s.config.Advertise.String()); err != nil || s.tracer == nil {
		return err
	}
	s.config.Store = spans.Store(s.config.Store)
	return nil
}

// endTraces sends what has not been sent yet.
func (s *Server) endTraces(ctx context.Context) {
	if s.tracer == nil {
		return
	}
	limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	if err := s.tracer.Shutdown(limited); err != nil {
		s.config.Log.Warn("the last traces were not sent", base.KeyError, err)
	}
}
