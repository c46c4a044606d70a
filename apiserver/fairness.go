package apiserver

import (
	"context"
	"net/http"

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

// Size implements flow.Objects.
func (f flowObjects) Size(gvr schema.GroupVersionResource) (objects, bytes int) {
	o := f.Objects(gvr)
	if o == nil || o.Cache == nil {
		return 0, 0
	}
	return o.Cache.Size()
}

// fairness returns the control of the server's requests.
func (s *Server) fairness() *flow.Control {
	return flow.New(flow.Config{
		Objects: flowObjects{s.rest}, Seats: s.config.MaxInFlight + s.config.MaxMutatingInFlight, Patience: s.config.RequestTimeout / 4, Changed: s.tellFlows, Metrics: s.measure,
	})
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
	ctx, cancel := context.WithTimeout(context.Background(), s.config.RequestTimeout)
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
	if s.plain != nil {
		return s.enterPlain(w, r, state)
	}
	t, err := s.flow.Enter(ctx, w, r, state)
	if err != nil {
		s.config.Log.Debug("request has to wait for too long", base.KeyUser, state.User.GetName(), base.KeyPath, r.URL.Path, base.KeyError, err)
		s.measure.Dropped(kindOf(r, &state.Info))
		flow.Refuse(w)
		return nil, false
	}
	if state.Info.Verb == "watch" {
		state.Begun = t.Leave
		unwatch := s.flow.Watching(&state.Info)
		return func() { t.Leave(); unwatch() }, true
	}
	inFlight := s.measure.InFlight(writes(&state.Info))
	inFlight.Up(state.Received)
	return func() { inFlight.Down(); t.Leave() }, true
}

// enterPlain is enter without priority and fairness.
func (s *Server) enterPlain(w http.ResponseWriter, r *http.Request, state *request.State) (leave func(), ok bool) {
	if isStream(&state.Info, r) {
		return func() {}, true
	}
	leave, ok = s.plain.Enter(state)
	if !ok {
		s.measure.Dropped(kindOf(r, &state.Info))
		flow.Refuse(w)
		return nil, false
	}
	inFlight := s.measure.InFlight(writes(&state.Info))
	inFlight.Up(state.Received)
	return func() { inFlight.Down(); leave() }, true
}

// flowRoutes serves what the levels are doing.
func (s *Server) flowRoutes(routes *http.ServeMux) {
	if s.plain != nil {
		return
	}
	show := func(name string, dump func(w http.ResponseWriter, r *http.Request)) {
		routes.HandleFunc("/debug/api_priority_and_fairness/"+name, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/plain; charset=utf-8")
			dump(w, r)
		})
	}
	show("dump_priority_levels", func(w http.ResponseWriter, _ *http.Request) { s.flow.Dump(w) })
	show("dump_queues", func(w http.ResponseWriter, _ *http.Request) { s.flow.DumpQueues(w) })
	show("dump_requests", func(w http.ResponseWriter, r *http.Request) {
		s.flow.DumpRequests(w, r.URL.Query().Get("includeRequestDetails") != "")
	})
}
