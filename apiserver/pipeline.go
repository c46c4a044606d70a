package apiserver

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"runtime/debug"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/uuid"

	"github.com/periplus/periplus/apiserver/authz"
	"github.com/periplus/periplus/apiserver/openapi"
	"github.com/periplus/periplus/apiserver/request"
	"github.com/periplus/periplus/base"
)

// pipeline returns the handler that takes every request through the stations:
//
//	state ── authenticate ── impersonate ── authorize ── limit ── serve
func (s *Server) pipeline(discovery http.Handler) http.Handler {
	routes := http.NewServeMux()
	routes.Handle("/api/", s.resources(discovery))
	routes.Handle("/apis/", s.others.Wrap(s.resources(discovery)))
	routes.Handle("/api", discovery)
	routes.Handle("/apis", discovery)
	documents := openapi.New(s.rest.Listings, s.config.Version)
	documents.Schemas, documents.SchemasV2, documents.Tags = s.crds.Schema, s.crds.SchemaV2, s.crds.Tag
	documents.Remotes = s.others.Documents
	routes.Handle("/openapi/", documents)
	routes.Handle("/debug/pprof/", profiling())
	routes.HandleFunc("/version", s.version)
	routes.HandleFunc("/version/", s.version)
	routes.Handle("/logs/", s.logs())
	routes.Handle("/logs", http.RedirectHandler("/logs/", http.StatusMovedPermanently))
	s.health(routes)
	s.identity(routes)
	for prefix, h := range s.config.Extra {
		routes.Handle(prefix, h)
	}
	routes.HandleFunc("/", s.root)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { s.serve(w, r, routes) })
}

// resources serves resource requests, and passes discovery on.
func (s *Server) resources(discovery http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if request.From(r.Context()).Info.IsResource {
			s.rest.ServeHTTP(w, r)
			return
		}
		discovery.ServeHTTP(w, r)
	})
}

func (s *Server) serve(w http.ResponseWriter, r *http.Request, routes http.Handler) {
	state := &request.State{Info: request.Parse(r), AuditID: auditID(r), Received: time.Now(), Agent: r.UserAgent(), Metrics: s.measure}
	w.Header().Set("Audit-Id", state.AuditID)
	defer s.recover(w, r)

	ctx := request.With(r.Context(), state)
	var denied error
	if u, ok := request.UserFrom(ctx); ok {
		state.User = u
	} else {
		denied = s.authenticate(r, state)
	}
	if s.audit != nil {
		rec, err := s.audit.Begin(r, state, isStream(&state.Info, r))
		if err != nil {
			s.rest.Codecs().WriteError(w, r, apierrors.NewInternalError(errors.New("failed to write the request's audit event")))
			return
		}
		if rec != nil {
			state.Audit, w, r = rec, rec.Writer(w), r.WithContext(ctx)
			defer rec.End()
		}
	}
	if denied != nil {
		s.refuse(w, r, denied)
		return
	}
	if s.tracer != nil {
		seen := &answer{ResponseWriter: w}
		traced, end := s.tracer.Request(ctx, r, state)
		ctx, w = traced, seen
		defer func() { end(seen.code, seen.bytes) }()
	}
	if err := s.impersonate(ctx, state, r.Header); err != nil {
		s.config.Log.Debug("request may not impersonate", base.KeyUser, state.User.GetName(), base.KeyError, err)
		s.rest.Codecs().WriteError(w, r, err)
		return
	}
	leave, ok := s.enter(ctx, w, r, state)
	if !ok {
		return
	}
	defer leave()
	q := authz.Of(state)
	d, reason, failed := s.authorize(ctx, q)
	noteDecision(state, d == authz.Allow, reason)
	if d != authz.Allow {
		err := authz.Forbidden(q, reason)
		if failed != nil {
			err = apierrors.NewInternalError(failed)
		}
		s.config.Log.Debug("request is not authorized", base.KeyUser, state.User.GetName(), base.KeyPath, r.URL.Path, base.KeyError, err)
		s.rest.Codecs().WriteError(w, r, err)
		return
	}
	of := kindOf(r, &state.Info)
	a := &answer{ResponseWriter: w}
	w = a
	defer s.measureEnd(state, a, of)
	if isStream(&state.Info, r) {
		unbounded(w)
		defer s.measure.Lasts(of)()
	} else {
		limit, err := s.timeoutOf(r)
		if err != nil {
			s.rest.Codecs().WriteError(w, r, err)
			return
		}
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, state.Received.Add(limit))
		defer cancel()
	}
	routes.ServeHTTP(w, r.WithContext(ctx))
}

// isStream reports whether a request may last.
func isStream(i *request.Info, r *http.Request) bool {
	if i.Verb == "watch" || r.Header.Get("Upgrade") != "" && strings.Contains(strings.ToLower(r.Header.Get("Connection")), "upgrade") {
		return true
	}
	switch i.Subresource {
	case "log", "exec", "attach", "portforward", "proxy":
		return true
	}
	return strings.HasPrefix(r.URL.Path, "/periplus/") && r.URL.Query().Get("follow") != ""
}

// auditID is the client's, or a new one.
func auditID(r *http.Request) string {
	if id := r.Header.Get("Audit-Id"); id != "" && len(id) <= 64 && strings.Trim(id, "0123456789abcdefABCDEF-") == "" {
		return id
	}
	return string(uuid.NewUUID())
}

// recover answers a request whose handler has panicked.
func (s *Server) recover(w http.ResponseWriter, r *http.Request) {
	switch p := recover(); p {
	case nil:
	case http.ErrAbortHandler: //nolint:errorlint // a panic value, compared as net/http does
		panic(p)
	default:
		s.config.Log.Error("request handler panicked", base.KeyError, fmt.Sprint(p), base.KeyPath, r.URL.Path, "stack", string(debug.Stack()))
		s.rest.Codecs().WriteError(w, r, apierrors.NewInternalError(fmt.Errorf("the server failed while handling the request: %v", p)))
	}
}
