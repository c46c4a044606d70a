package apiserver

import (
	"context"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/client-go/kubernetes"

	"github.com/periplus/periplus/apiserver/flow"
	"github.com/periplus/periplus/apiserver/request"
	"github.com/periplus/periplus/apiserver/rest"
	"github.com/periplus/periplus/base"
)

// flowObjects reads for package flow.
type flowObjects struct{ *rest.Server }

// Count implements flow.Objects.
func (f flowObjects) Count(gvr schema.GroupVersionResource) int {
	o := f.Objects(gvr)
	if o == nil || o.Cache == nil {
		return 0
	}
	return o.Cache.Len()
}

// fairness returns the control of the server's requests.
func (s *Server) fairness() *flow.Control {
	seats := s.config.MaxInFlight
	if seats == 0 {
		seats = flow.Seats
	}
	return flow.New(flowObjects{s.rest}, seats, requestTimeout/4, s.tellFlows)
}

// tellFlows brings the statuses of flow schemas in line, once the server is ready.
func (s *Server) tellFlows() {
	select {
	case <-s.ready:
	default:
		return // keepFlows does it
	}
	if s.telling.Add(1) > 1 {
		return // who is at it looks once more
	}
	ctx, cancel := context.WithTimeout(context.Background(), requestTimeout)
	defer cancel()
	go func() { // the server's end is this one's, too
		select {
		case <-s.stop:
			cancel()
		case <-ctx.Done():
		}
	}()
	for {
		asked := s.telling.Load()
		c, err := kubernetes.NewForConfig(s.ClientConfig("system:apiserver", user.SystemPrivilegedGroup))
		if err == nil {
			err = s.flow.Tell(ctx, c.FlowcontrolV1().FlowSchemas())
		}
		if err != nil {
			s.config.Log.Debug("statuses of flow schemas were not written", base.KeyError, err)
		}
		if s.telling.CompareAndSwap(asked, 0) {
			return
		}
	}
}

// keepFlows makes the objects of priority and fairness that every cluster has. Until
// they are there the server acts as if they were.
func (s *Server) keepFlows(ctx context.Context, c kubernetes.Interface) error {
	if err := flow.Keep(ctx, c.FlowcontrolV1()); err != nil && ctx.Err() == nil {
		s.config.Log.Warn("objects of priority and fairness could not be made; the server acts as if they were there", base.KeyError, err)
	}
	s.tellFlows()
	return nil
}

// enter waits until a request may go on. Streams other than watches are not counted,
// watches only while they begin.
func (s *Server) enter(ctx context.Context, w http.ResponseWriter, r *http.Request, state *request.State) (leave func(), ok bool) {
	switch state.Info.Subresource {
	case "exec", "attach", "portforward", "log", "proxy":
		return func() {}, true
	}
	t, err := s.flow.Enter(ctx, w, r, state)
	if err != nil {
		s.config.Log.Debug("request has to wait for too long", base.KeyUser, state.User.GetName(), base.KeyPath, r.URL.Path, base.KeyError, err)
		flow.Refuse(w)
		return nil, false
	}
	if t == nil {
		return func() {}, true
	}
	if state.Info.Verb == "watch" {
		state.Begun = t.Leave
	}
	return t.Leave, true
}

// flowRoutes serves what the levels are doing.
func (s *Server) flowRoutes(routes *http.ServeMux) {
	routes.HandleFunc("/debug/api_priority_and_fairness/dump_priority_levels", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		s.flow.Dump(w)
	})
}

// metricsHandler serves the process's metrics and those of this server.
func (s *Server) metricsHandler() http.Handler {
	own := prometheus.NewRegistry()
	own.MustRegister(s.flow)
	return promhttp.HandlerFor(prometheus.Gatherers{prometheus.DefaultGatherer, own}, promhttp.HandlerOpts{Timeout: 30 * time.Second})
}
