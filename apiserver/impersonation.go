package apiserver

import (
	"context"
	"net/http"
	"time"

	"github.com/periplus/periplus/apiserver/audit"
	"github.com/periplus/periplus/apiserver/authz"
	"github.com/periplus/periplus/apiserver/impersonation"
	"github.com/periplus/periplus/apiserver/request"
)

// impersonate lets a request act as the user that its Impersonate-* headers name, if its
// sender may.
func (s *Server) impersonate(ctx context.Context, state *request.State, h http.Header) error {
	wanted, err := impersonation.Wanted(h)
	if wanted == nil || err != nil {
		return err
	}
	start := time.Now()
	as, constraint, err := s.stands.Check(ctx, wanted, authz.Of(state))
	s.measure.Impersonated(constraint, err == nil, time.Since(start))
	if err != nil {
		return err
	}
	state.Impersonator, state.User = state.User, as
	if rec, ok := state.Audit.(*audit.Record); ok {
		rec.Impersonated(as, constraint)
	}
	return nil
}
