package rest

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/periplus/periplus/apiserver/admission"
	"github.com/periplus/periplus/apiserver/cacher"
	"github.com/periplus/periplus/apiserver/measure"
	"github.com/periplus/periplus/apiserver/registry"
	"github.com/periplus/periplus/apiserver/request"
	"github.com/periplus/periplus/journey"
	"github.com/periplus/periplus/store"
)

// Config is what a Server is made of.
type Config struct {
	Store     store.Store
	Caches    *cacher.Set
	Scheme    *runtime.Scheme
	Admission admission.Chain
	Journey   journey.Recorder
	Log       *slog.Logger
	// Types reads the types of kinds, for field management. It is called when the
	// first object of a resource is applied, or of a custom resource is written.
	Types func(kinds map[schema.GroupVersionKind]runtime.Object) (managedfields.TypeConverter, error)
	// MayCreate returns an error unless the request's user may create what it writes
	// (updates and applies of absent objects); nil allows everybody.
	MayCreate func(ctx context.Context) error
	// Authorizer answers expressions of admission.
	Authorizer authorizer.UnconditionalAuthorizer
	// Silent returns since when the store has not answered, nil if it does.
	Silent func() *store.Silence
	// Sealed tells of entries that are kept encrypted.
	Sealed Sealed
	// MinWatch is for how long watches last at least that do not say so; default 30 minutes.
	MinWatch time.Duration
	// Metrics count what belongs to no request; may be nil.
	Metrics *measure.Metrics
	// Stop ends watches when the server is about to end.
	Stop <-chan struct{}
}

// A Server serves resource requests. Resources can be added and removed while it runs.
type Server struct {
	config Config
	codecs *Codecs

	mu        sync.RWMutex
	endpoints map[schema.GroupVersionResource]*endpoint
	objects   map[schema.GroupVersionResource]*Objects // by stored GVR
	extra     map[string]Subresource                   // by "resource.group/subresource"
	changed   chan struct{}                            // closed and replaced when a resource is added, replaced or removed
}

// An endpoint is one served group version of a resource.
type endpoint struct {
	server   *Server
	gvr      schema.GroupVersionResource
	gvk      schema.GroupVersionKind
	objects  *Objects
	also     *registry.Served   // nil for the stored version, unless objects lie in the store in others
	view     *registry.View     // what holds for this version
	listed   *registry.Resource // as discovery shows it: with what holds for this version
	managers fieldManagers
	filters  filters
	blank    runtime.Object // an empty one: what is there before a creation; never modified
	gone     chan struct{}  // closed when the endpoint is replaced or removed: watches end
}

// A Subresource answers requests to one named subresource of a resource.
type Subresource interface {
	// Verbs as in discovery: "create", "get" …
	Verbs() []string
	// Kind is the kind of what is sent and answered.
	Kind() schema.GroupVersionKind
	// Serve answers the request, or returns an API error for the caller to write.
	Serve(w http.ResponseWriter, r *http.Request, info *request.Info, parent *Objects) error
}

// New returns a server without resources.
func New(config Config) *Server {
	boundCopies()
	return &Server{
		config: config, codecs: NewCodecs(config.Scheme),
		endpoints: map[schema.GroupVersionResource]*endpoint{},
		objects:   map[schema.GroupVersionResource]*Objects{},
		extra:     map[string]Subresource{},
		changed:   make(chan struct{}),
	}
}

// Codecs returns the server's encoders.
func (s *Server) Codecs() *Codecs { return s.codecs }

// AddSubresource serves a subresource of the resource named by gr.
func (s *Server) AddSubresource(gr schema.GroupResource, name string, sub Subresource) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.extra[gr.String()+"/"+name] = sub
}

// Objects returns the stored objects of a resource, or nil.
func (s *Server) Objects(gvr schema.GroupVersionResource) *Objects {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.objects[gvr]
}

var _ registry.Awaiter = (*Server)(nil)

// Get returns a current object from the cache.
func (s *Server) Get(gvr schema.GroupVersionResource, namespace, name string) (runtime.Object, error) {
	o := s.Objects(gvr)
	if o == nil || o.Cache == nil {
		return nil, noResource(gvr.GroupResource())
	}
	key, err := o.key(namespace, name)
	if err != nil {
		return nil, err
	}
	if obj := o.Cache.Get(key); obj != nil {
		return obj.Obj, nil
	}
	return nil, apierrors.NewNotFound(gvr.GroupResource(), name)
}

// Await returns an object from the cache as soon as it is there.
func (s *Server) Await(ctx context.Context, gvr schema.GroupVersionResource, namespace, name string) (runtime.Object, error) {
	o := s.Objects(gvr)
	if o == nil || o.Cache == nil {
		return nil, noResource(gvr.GroupResource())
	}
	key, err := o.key(namespace, name)
	if err != nil {
		return nil, err
	}
	_, changes := o.Cache.SnapshotAndWatch()
	if obj := o.Cache.Get(key); obj != nil {
		return obj.Obj, nil
	}
	buf := make([]cacher.Event, 0, 16)
	for {
		events, err := changes.Next(ctx, buf[:0])
		if err != nil {
			return nil, apierrors.NewNotFound(gvr.GroupResource(), name)
		}
		for i := range events {
			if e := &events[i]; e.Object.Key == key && !e.Deleted {
				return e.Object.Obj, nil
			}
		}
	}
}

// List returns the current objects of a namespace from the cache.
func (s *Server) List(gvr schema.GroupVersionResource, namespace string) ([]runtime.Object, error) {
	o := s.Objects(gvr)
	if o == nil || o.Cache == nil {
		return nil, noResource(gvr.GroupResource())
	}
	prefix := cacher.Root + o.Resource.Prefix() + "/"
	if namespace != "" {
		prefix += namespace + "/"
	}
	var out []runtime.Object
	o.Cache.Scan(prefix, func(obj *cacher.Object) bool {
		out = append(out, obj.Obj)
		return true
	})
	return out, nil
}

// A call is one request to an endpoint.
type call struct {
	info          *request.Info
	format        format
	includeObject metav1.IncludeObjectPolicy
}

// ServeHTTP answers resource requests. The request's State must be in its context.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if err := s.serve(w, r); err != nil {
		s.codecs.WriteError(w, r, err)
	}
}

func (s *Server) serve(w http.ResponseWriter, r *http.Request) error {
	state := request.From(r.Context())
	if state == nil {
		return apierrors.NewInternalError(fmt.Errorf("request without state"))
	}
	info := &state.Info
	s.mu.RLock()
	e := s.endpoints[info.GVR()]
	var extra Subresource
	if e != nil && info.Subresource != "" {
		extra = s.extra[info.GVR().GroupResource().String()+"/"+info.Subresource]
	}
	s.mu.RUnlock()
	if e == nil || info.Namespace != "" && !e.objects.Resource.Namespaced && info.Resource != "namespaces" {
		return noResource(schema.GroupResource{Group: info.Group, Resource: info.Resource})
	}
	if text := e.view.Deprecated; text != "" {
		request.Warn(r.Context(), text)
		request.Metrics(r.Context()).Deprecated(info.Group, info.Version, info.Resource, info.Subresource, removedIn(text))
	}
	if extra != nil {
		if err := s.admitConnection(r.Context(), r.URL.Query(), info, e.objects, extra); err != nil {
			return err
		}
		return extra.Serve(w, r, info, e.objects)
	}
	c := &call{info: info}
	var ok bool
	if c.format, ok = negotiate(r.Header.Get("Accept"), e.offers()); !ok && info.Verb != "watch" {
		return notAcceptable()
	}
	if r.URL.RawQuery != "" {
		q := r.URL.Query()
		c.includeObject = metav1.IncludeObjectPolicy(q.Get("includeObject"))
	}
	if state.Traced {
		return e.traced(w, r, c)
	}
	return e.dispatch(w, r, c)
}

// dispatch answers the verbs of the resource itself, of /status and of /scale.
func (e *endpoint) dispatch(w http.ResponseWriter, r *http.Request, c *call) error {
	res := e.objects.Resource
	switch sub := c.info.Subresource; {
	case sub == "" && res.Verbs != nil && !slices.Contains(res.Verbs, c.info.Verb):
	case sub == "" && res.Create != nil:
		if c.info.Verb == "create" {
			return e.review(w, r, c)
		}
	case sub == "" && res.Live != nil:
		switch c.info.Verb {
		case "get", "list":
			return e.live(w, r, c)
		}
	case sub == "":
		switch c.info.Verb {
		case "get":
			return e.get(w, r, c)
		case "list":
			return e.list(w, r, c)
		case "watch":
			return e.watch(w, r, c)
		case "create":
			if c.info.Name == "" {
				return e.create(w, r, c)
			}
		case "update":
			return e.update(w, r, c, e.view.Strategy)
		case "patch":
			return e.patch(w, r, c, e.view.Strategy)
		case "delete":
			return e.delete(w, r, c)
		case "deletecollection":
			return e.deleteCollection(w, r, c)
		}
	case sub == "status" && e.view.Status != nil:
		switch c.info.Verb {
		case "get":
			return e.get(w, r, c)
		case "update":
			return e.update(w, r, c, e.view.Status)
		case "patch":
			return e.patch(w, r, c, e.view.Status)
		}
	case sub == "scale" && e.view.Scale != nil:
		return e.scale(w, r, c)
	case res.Views[sub] != nil:
		switch c.info.Verb {
		case "get":
			return e.get(w, r, c)
		case "update":
			return e.update(w, r, c, res.Views[sub])
		case "patch":
			return e.patch(w, r, c, res.Views[sub])
		}
	default:
		return noResource(e.gvr.GroupResource())
	}
	return apierrors.NewMethodNotSupported(e.gvr.GroupResource(), c.info.Verb)
}

// Decode reads a request's body as an object of the given kind, as strictly as
// the request asks for.
func (s *Server) Decode(w http.ResponseWriter, r *http.Request, gvk schema.GroupVersionKind, into runtime.Object) (runtime.Object, error) {
	options := &metav1.CreateOptions{}
	if err := decodeOptions(r.URL.Query(), options); err != nil {
		return nil, err
	}
	body, err := readBody(w, r)
	if err != nil {
		return nil, err
	}
	obj, err := s.codecs.decodeBody(r, body, gvk, into, fieldValidation(options.FieldValidation))
	if err == nil {
		s.codecs.auditRequest(r, obj)
	}
	return obj, err
}

// Version returns a number that changes with every change of a resource's objects.
func (s *Server) Version(gvr schema.GroupVersionResource) int64 {
	if o := s.Objects(gvr); o != nil && o.Cache != nil {
		return o.Cache.Version()
	}
	return 0
}

// get serves GET of one object.
func (e *endpoint) get(w http.ResponseWriter, r *http.Request, c *call) error {
	if version := r.URL.Query().Get("resourceVersion"); version != "" {
		if err := e.fresh(r.Context(), version); err != nil {
			return err
		}
		key, err := e.objects.key(c.info.Namespace, c.info.Name)
		if err != nil {
			return err
		}
		if obj := e.objects.Cache.Get(key); obj != nil {
			return e.writeObject(w, r, c, http.StatusOK, obj)
		}
	}
	obj, err := e.objects.Get(r.Context(), c.info.Namespace, c.info.Name)
	if err != nil {
		return err
	}
	return e.writeObject(w, r, c, http.StatusOK, obj)
}
