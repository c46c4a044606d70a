package apiserver

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/client-go/kubernetes"
	restclient "k8s.io/client-go/rest"

	admissionall "github.com/periplus/periplus/apiserver/admission/all"
	"github.com/periplus/periplus/apiserver/aggregator"
	"github.com/periplus/periplus/apiserver/audit"
	authnall "github.com/periplus/periplus/apiserver/authn/all"
	authzall "github.com/periplus/periplus/apiserver/authz/all"
	"github.com/periplus/periplus/apiserver/authz/node"
	"github.com/periplus/periplus/apiserver/authz/rbac"
	"github.com/periplus/periplus/apiserver/cacher"
	"github.com/periplus/periplus/apiserver/crd"
	"github.com/periplus/periplus/apiserver/discovery"
	"github.com/periplus/periplus/apiserver/encryption"
	"github.com/periplus/periplus/apiserver/flow"
	"github.com/periplus/periplus/apiserver/impersonation"
	"github.com/periplus/periplus/apiserver/measure"
	"github.com/periplus/periplus/apiserver/metrics"
	"github.com/periplus/periplus/apiserver/printers"
	"github.com/periplus/periplus/apiserver/registry"
	"github.com/periplus/periplus/apiserver/registry/all"
	"github.com/periplus/periplus/apiserver/request"
	"github.com/periplus/periplus/apiserver/rest"
	"github.com/periplus/periplus/apiserver/review"
	"github.com/periplus/periplus/apiserver/spans"
	"github.com/periplus/periplus/apiserver/subresource"
	"github.com/periplus/periplus/base"
	"github.com/periplus/periplus/client"
	"github.com/periplus/periplus/store"
)

// A Server is one API server. Make it with New, then Run it.
type Server struct {
	config  Config
	caches  *cacher.Set
	rest    *rest.Server
	crds    *crd.Server
	sealed  *encryption.Store // nil: nothing is encrypted
	places  map[string]schema.GroupResource
	hello   atomic.Pointer[tls.Config] // towards clients
	others  *aggregator.Server
	authn   *authnall.Authentication
	authz   *authzall.Authorization
	audit   *audit.Auditor // nil: nothing is audited
	flow    *flow.Control
	stands  *impersonation.Checker // who may act as whom
	plain   *flow.Limits           // instead of flow; nil: flow
	measure *measure.Metrics
	tracer  *spans.Tracer // nil: nothing is traced
	telling atomic.Int32  // calls of tellFlows that wait for one that is at it
	handler http.Handler
	// answered is closed when the last request from outside has been answered.
	answered chan struct{}
	stop     chan struct{} // closed when watches are to end
	ready    chan struct{} // closed when the server is ready
	state    readiness
	stopped  sync.Once
}

// New assembles a server. It does not touch the store yet.
func New(config Config) (*Server, error) {
	if err := config.validate(); err != nil {
		return nil, err
	}
	scheme := runtime.NewScheme()
	if err := errors.Join(all.AddToScheme(scheme), metrics.AddToScheme(scheme)); err != nil {
		return nil, fmt.Errorf("register the API's types: %w", err)
	}
	s := &Server{config: config, measure: measure.New(), stop: make(chan struct{}), answered: make(chan struct{}), ready: make(chan struct{})}
	disk := config.Store
	s.config.Store = s.measure.Store(disk, s.resourceOf)
	if err := s.traces(); err != nil {
		return nil, err
	}
	if err := s.encrypts(); err != nil {
		return nil, err
	}
	config.Store = s.config.Store
	pulse := store.NewPulse(config.Store, config.Log)
	s.config.Store = pulse
	s.caches = cacher.NewSet(pulse, config.Log)
	// The plug-ins read through the server that they are part of.
	late := &lateReader{}
	config.Admission.Disable = append(config.Admission.Disable, config.DisableAdmission...)
	plugins, err := admissionall.Chain(late, config.Admission)
	if err != nil {
		return nil, fmt.Errorf("admission: %w", err)
	}
	s.rest = rest.New(rest.Config{
		Store: pulse, Silent: pulse.Silent, Sealed: s.sealedRules(), Caches: s.caches, Scheme: scheme,
		Admission: append(plugins, config.Plugins...), Journey: config.Journey, Log: config.Log, Stop: s.stop,
		Metrics: s.measure, MinWatch: config.MinRequestTimeout, Types: s.types, MayCreate: s.mayCreate, Authorizer: expressions{s},
	})
	late.Server = s.rest
	s.crds = crd.New(s.rest, config.Log)
	s.others = aggregator.New(aggregator.Config{Rest: s.rest, ProxyClient: config.ProxyClient, ClusterIPs: config.AggregateByClusterIP, Log: config.Log})
	if s.authn, err = s.authentication(); err != nil {
		return nil, fmt.Errorf("authentication: %w", err)
	}
	roles := rbac.New(s.rest)
	if s.authz, err = authzall.New(authzall.Config{Metrics: s.measure, Options: config.Authorization, Node: node.New(s.rest, rbac.NodeAllows), RBAC: roles}); err != nil {
		return nil, fmt.Errorf("authorization: %w", err)
	}
	s.stands = impersonation.New(s.authz)
	if err := s.addResources(roles); err != nil {
		return nil, err
	}
	if s.audit, err = audit.New(config.Audit, config.Log); err != nil {
		return nil, err
	}
	s.flow = s.fairness()
	if s.config.NoFairness {
		s.plain = &flow.Limits{Reading: s.config.MaxInFlight, Writing: s.config.MaxMutatingInFlight}
	}
	s.readings(disk)
	s.handler = s.pipeline(&discovery.Handler{Resources: s.rest.Listings, Codecs: s.rest.Codecs(), Table: s.others.Table})
	return s, nil
}

// lateReader breaks the circle between the server and its plug-ins.
type lateReader struct{ *rest.Server }

func (s *Server) addResources(roles *rbac.Mode) error {
	env := registry.Env{
		ServiceCIDRs: s.config.ServiceCIDRs, NodePortLow: s.config.NodePortLow, NodePortHigh: s.config.NodePortHigh, Objects: s.rest, Authz: s.authz,
	}
	views := views()
	reviews := review.Funcs(review.Config{Tokens: s.authn.Tokens, Audiences: s.authn.Accounts.Audiences(), Authz: s.authz, Rules: s.authz.Rules})
	tables := printers.Tables()
	guards := rbac.Guard{Mode: roles, Authz: s.authz}.Hooks()
	s.places = map[string]schema.GroupResource{}
	for _, r := range all.Resources(env) {
		s.places[r.Prefix()] = r.GVR.GroupResource()
		if !runtimeConfig(s.config.RuntimeConfig).narrow(r) {
			continue
		}
		r.Create = reviews[r.GVR]
		s.special(r)
		r.Views = views[r.GVR]
		if guard, ok := guards[r.GVR]; ok {
			r.Hooks = guard
		}
		if t := tables[r.GVR]; t != nil {
			r.Table = t
		}
		if _, err := s.rest.Add(context.Background(), r); err != nil {
			return err
		}
	}
	for _, e := range subresource.List(subresource.Config{
		Server: s.rest, Tokens: s.authn.Accounts, Authz: s.authz, KubeletTLS: s.config.KubeletTLS, Journey: s.config.Journey,
	}) {
		s.rest.AddSubresource(e.Parent, e.Name, e.Sub)
	}
	return s.addMetrics()
}

// Authorization decides who may do what, for those who reload it.
func (s *Server) Authorization() *authzall.Authorization { return s.authz }

// Handler serves the API. In-process clients call it directly.
func (s *Server) Handler() http.Handler { return s.handler }

// Source hands out the server's own objects to informers in this process.
func (s *Server) Source() client.Source { return s.rest.Source() }

// Ready is closed when the server has loaded its objects and made the ones that
// every cluster has.
func (s *Server) Ready() <-chan struct{} { return s.ready }

// ClientConfig returns a client configuration for a component in this process.
func (s *Server) ClientConfig(name string, groups ...string) *restclient.Config {
	u := &user.DefaultInfo{Name: name, Groups: append(groups, user.AllAuthenticated)}
	return client.InProcess(s.handler, client.UserAgent(name), func(ctx context.Context) context.Context {
		return request.WithUser(ctx, u)
	})
}

// Run loads the objects, serves on the listeners (TLS is added here) and
// returns when ctx has ended and all requests have.
func (s *Server) Run(ctx context.Context, listeners ...net.Listener) error {
	defer s.authn.Close()
	defer s.endTraces(ctx)
	if s.sealed != nil {
		defer s.sealed.End()
	}
	group, ctx := errgroup.WithContext(ctx)
	if err := s.caches.Load(ctx); err != nil {
		return fmt.Errorf("load the objects: %w", err)
	}
	if err := s.crds.Load(ctx); err != nil {
		return fmt.Errorf("load the custom resources: %w", err)
	}
	server := s.listener()
	group.Go(func() error { return s.caches.Run(ctx) })
	if s.audit != nil {
		group.Go(func() error { return s.runAudit(ctx) })
	}
	group.Go(func() error {
		select {
		case <-s.caches.Following():
			return s.crds.Run(ctx)
		case <-ctx.Done():
			return nil
		}
	})
	group.Go(func() error {
		select {
		case <-s.caches.Following():
			return s.others.Run(ctx)
		case <-ctx.Done():
			return nil
		}
	})
	for _, l := range listeners {
		group.Go(func() error {
			if err := server.ServeTLS(l, "", ""); !errors.Is(err, http.ErrServerClosed) {
				return fmt.Errorf("serve on %s: %w", l.Addr(), err)
			}
			return nil
		})
	}
	group.Go(func() error {
		<-ctx.Done()
		s.state.stopping()
		s.stopped.Do(func() { close(s.stop) })
		limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		defer cancel()
		defer close(s.answered)
		if err := server.Shutdown(limited); err != nil {
			return server.Close()
		}
		return nil
	})
	group.Go(func() error {
		c, err := kubernetes.NewForConfig(s.ClientConfig("system:apiserver", user.SystemPrivilegedGroup))
		if err != nil {
			return err
		}
		select {
		case <-s.caches.Following():
		case <-ctx.Done():
			return nil
		}
		if err := s.bootstrap(ctx, c); err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return fmt.Errorf("make the cluster's first objects: %w", err)
		}
		s.state.ready()
		close(s.ready)
		if s.config.Shared {
			group.Go(func() error { return s.keepEndpoint(ctx, c) })
		}
		group.Go(func() error { return s.expireEvents(ctx) })
		group.Go(func() error { return s.keepFlows(ctx, c) })
		s.config.Log.Info("API server is ready", base.KeyAddress, s.config.Advertise.String(), base.KeyRevision, s.caches.Rev())
		return nil
	})
	return group.Wait()
}
