package apiserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	goruntime "runtime"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/version"

	"github.com/periplus/periplus/apiserver/measure"
	"github.com/periplus/periplus/store"
)

// readiness is where a server is in its life.
type readiness struct{ phase atomic.Int32 }

const (
	starting int32 = iota
	serving
	ending
)

func (r *readiness) ready()    { r.phase.CompareAndSwap(starting, serving) }
func (r *readiness) stopping() { r.phase.Store(ending) }

// A check is one line of /livez and /readyz.
type check struct {
	name string
	run  func(context.Context) error
}

func (s *Server) health(routes *http.ServeMux) {
	ping := check{"ping", func(context.Context) error { return nil }}
	etcd := check{"etcd", func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
		defer cancel()
		// A linearizable read takes the way of writes as far as the disk.
		_, err := s.config.Store.Get(ctx, "/registry/health")
		if errors.Is(err, store.ErrNotFound) {
			return nil
		}
		return err
	}}
	log := check{"log", func(context.Context) error { return nil }} // nothing is kept back that could be lost
	started := startHooks(func(context.Context) error {
		if s.state.phase.Load() == starting {
			return fmt.Errorf("not finished")
		}
		return nil
	})
	sync := check{"informer-sync", func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
		defer cancel()
		return s.caches.Sync(ctx)
	}}
	keys := check{"kms-providers", func(ctx context.Context) error {
		if s.sealed == nil {
			return nil
		}
		return s.sealed.Check(ctx)
	}}
	shutdown := check{"shutdown", func(context.Context) error {
		if s.state.phase.Load() == ending {
			return fmt.Errorf("process is shutting down")
		}
		return nil
	}}
	slis := measure.NewSLIs()
	for name, checks := range map[string][]check{
		"healthz": {ping, log, etcd}, "livez": {ping, log, etcd}, "readyz": {ping, log, etcd, sync},
	} {
		checks = append(checks, started...)
		if name == "readyz" {
			checks = append(checks, shutdown)
		}
		if s.sealed != nil {
			checks = append(checks, keys)
		}
		h := checkHandler(name, checks, slis)
		routes.Handle("/"+name, h)
		routes.Handle("/"+name+"/", h)
	}
	routes.Handle("/metrics", s.metricsHandler())
	routes.Handle("/metrics/slis", measure.Handler(slis))
	s.flowRoutes(routes)
}

// checkHandler answers /<name>, ?verbose, ?exclude=… and /<name>/<check>.
func checkHandler(name string, checks []check, slis *measure.SLIs) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		only := strings.Trim(strings.TrimPrefix(r.URL.Path, "/"+name), "/")
		query := r.URL.Query()
		var lines strings.Builder
		failed, found := false, only == ""
		for _, c := range checks {
			if only != "" && c.name != only {
				continue
			}
			found = true
			if slices.Contains(query["exclude"], c.name) {
				fmt.Fprintf(&lines, "[+]%s excluded: ok\n", c.name)
				continue
			}
			err := c.run(r.Context())
			slis.Checked(c.name, name, err)
			if err != nil {
				failed = true
				fmt.Fprintf(&lines, "[-]%s failed: reason withheld\n", c.name)
				continue
			}
			fmt.Fprintf(&lines, "[+]%s ok\n", c.name)
		}
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		w.Header().Set("X-Content-Type-Options", "nosniff")
		w.Header().Set("Cache-Control", "no-cache, private")
		switch {
		case !found:
			http.Error(w, "404 page not found", http.StatusNotFound)
		case failed:
			http.Error(w, lines.String()+name+" check failed", http.StatusInternalServerError)
		case query.Has("verbose"):
			fmt.Fprintf(w, "%s%s check passed\n", lines.String(), name)
		default:
			fmt.Fprint(w, "ok")
		}
	})
}

// root lists the paths that are served.
func (s *Server) root(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path != "/" {
		w.Header().Set("Cache-Control", "no-cache, private")
		http.Error(w, "404 page not found", http.StatusNotFound)
		return
	}
	paths := []string{"/.well-known/openid-configuration", "/api", "/apis", "/healthz", "/livez", "/logs", "/metrics", "/metrics/slis", "/openapi/v2", "/openapi/v3", "/openid/v1/jwks", "/readyz", "/version"}
	for _, l := range s.rest.Listings() {
		if l.GVR.Group == "" {
			paths = append(paths, "/api/"+l.GVR.Version)
			continue
		}
		paths = append(paths, "/apis/"+l.GVR.Group, "/apis/"+l.GVR.Group+"/"+l.GVR.Version)
	}
	slices.Sort(paths)
	writeJSON(w, map[string][]string{"paths": slices.Compact(paths)})
}

func (s *Server) version(w http.ResponseWriter, _ *http.Request) {
	parts := strings.SplitN(strings.TrimPrefix(s.config.Version, "v"), ".", 3)
	info := version.Info{GitVersion: s.config.Version, GitTreeState: "clean", GoVersion: goruntime.Version(), Compiler: goruntime.Compiler, Platform: goruntime.GOOS + "/" + goruntime.GOARCH}
	if len(parts) > 1 {
		info.Major, info.Minor = parts[0], parts[1]
	}
	writeJSON(w, info)
}

func writeJSON(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-cache, private")
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	// An error here means that the client has gone.
	_ = e.Encode(v)
}
