package apiserver

import (
	"context"
	"net/http"
	"strings"
	"time"

	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/periplus/periplus/apiserver/authz"
	"github.com/periplus/periplus/apiserver/measure"
	"github.com/periplus/periplus/apiserver/request"
	"github.com/periplus/periplus/base/metric"
)

// authenticate finds out who sends a request.
func (s *Server) authenticate(r *http.Request, state *request.State) error {
	u, err := s.authn.Authenticate(r)
	name := ""
	if err == nil {
		state.User, name = u, u.GetName()
	}
	now := time.Now()
	if r.TLS != nil && len(r.TLS.PeerCertificates) > 0 {
		s.measure.Certificate(r.TLS.PeerCertificates[0].NotAfter.Sub(now))
	}
	s.measure.Authenticated(name, err, now.Sub(state.Received))
	return err
}

// authorize asks whether a request may be served.
func (s *Server) authorize(ctx context.Context, q *authz.Question) (authz.Decision, string, error) {
	start := time.Now()
	d, reason, err := s.authz.Authorize(ctx, q)
	result := measure.NoOpinion
	switch {
	case d == authz.Allow:
		result = measure.Allowed
	case err != nil:
		result = measure.Failed
	case d == authz.Deny:
		result = measure.Denied
	}
	s.measure.Authorized(result, time.Since(start))
	return d, reason, err
}

// kindOf are the labels of a request.
func kindOf(r *http.Request, i *request.Info) metric.Labels {
	if !i.IsResource {
		return measure.Kind(r, i.Verb, "", "", "", plainPath(i.Path), "", "", false)
	}
	return measure.Kind(r, i.Verb, i.Group, i.Version, i.Resource, i.Subresource, i.Namespace, i.Name, true)
}

// plainPath is a path that is not a resource's, without what clients may choose: there are
// to be few series.
func plainPath(path string) string {
	path = strings.TrimSuffix(path, "/")
	switch first, rest, deeper := strings.Cut(strings.TrimPrefix(path, "/"), "/"); first {
	case "healthz", "livez", "readyz", "metrics", "version", "logs", "api", "apis":
		return "/" + first
	case "openapi":
		second, _, _ := strings.Cut(rest, "/")
		if second == "v2" || second == "v3" {
			return "/openapi/" + second
		}
	case "openid", ".well-known":
		if path == "/openid/v1/jwks" || path == "/.well-known/openid-configuration" {
			return path
		}
	case "debug":
		if second, _, _ := strings.Cut(rest, "/"); deeper && (second == "pprof" || second == "api_priority_and_fairness") {
			return "/debug/" + second
		}
	}
	return ""
}

// measureEnd counts a request whose handler has returned, or panics. Only what is served
// here is counted as served: nobody can make series by asking for what does not exist.
func (s *Server) measureEnd(state *request.State, a *answer, of metric.Labels) {
	switch p := recover(); {
	case p != nil:
		s.measure.Aborted(of)
		panic(p)
	case !s.known(&state.Info, of):
		return
	}
	s.measure.Served(&measure.Request{Of: of, Code: a.code, Written: a.bytes, Took: time.Since(state.Received), Elsewhere: state.Elsewhere.Total()})
	if a.code == http.StatusGatewayTimeout {
		s.measure.Terminated(of, a.code)
	}
	if state.User.GetName() == user.APIServerUser {
		s.measure.ByItself(of)
	}
}

// known reports whether what a request is about is there.
func (s *Server) known(i *request.Info, of metric.Labels) bool {
	if !i.IsResource {
		return of[5] != ""
	}
	return s.rest.Serves(i.GVR(), i.Subresource)
}

// writes reports whether a request changes something.
func writes(i *request.Info) bool {
	switch i.Verb {
	case "get", "list", "watch", "head", "options":
		return false
	}
	return true
}
