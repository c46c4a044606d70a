package crd

import (
	"context"
	"fmt"
	"log/slog"
	"sync"

	"k8s.io/apiextensions-apiserver/pkg/apihelpers"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/periplus/periplus/apiserver/admission/webhook"
	"github.com/periplus/periplus/apiserver/cacher"
	"github.com/periplus/periplus/apiserver/registry"
	"github.com/periplus/periplus/apiserver/rest"
	"github.com/periplus/periplus/base"
)

// definitions is the resource of which this package serves the objects.
var definitions = apiextensionsv1.SchemeGroupVersion.WithResource("customresourcedefinitions")

// A Server serves the resources that definitions declare.
type Server struct {
	rest *rest.Server
	log  *slog.Logger

	mu     sync.RWMutex       // guards served and kinds
	served map[string]*served // by the definition's name
	// settled holds the states of definitions that need nothing until they change. Run's alone.
	settled map[string]*apiextensionsv1.CustomResourceDefinition
	kinds   map[schema.GroupVersionKind]*version // of what is served
}

// served is one definition as it is served now.
type served struct {
	crd      *apiextensionsv1.CustomResourceDefinition
	objects  *rest.Objects // nil: not served
	cleaning context.CancelFunc
	cleaned  chan struct{}
}

// New returns a server that adds its resources to r.
func New(r *rest.Server, log *slog.Logger) *Server {
	return &Server{rest: r, log: log, served: map[string]*served{}, settled: map[string]*apiextensionsv1.CustomResourceDefinition{}, kinds: map[schema.GroupVersionKind]*version{}}
}

// Load serves the definitions that are established already. The watch caches must
// be loaded. Call it before requests are answered, and before Run.
func (s *Server) Load(ctx context.Context) error {
	for _, crd := range s.list() {
		if !apihelpers.IsCRDConditionTrue(crd, apiextensionsv1.Established) {
			continue
		}
		if err := s.serve(ctx, crd); err != nil {
			s.log.Error("custom resource cannot be served", base.KeyName, crd.Name, base.KeyError, err)
		}
	}
	return nil
}

// Run follows the definitions until ctx ends.
func (s *Server) Run(ctx context.Context) error {
	defer s.end()
	cache := s.rest.Objects(definitions).Cache
	_, watch := cache.SnapshotAndWatch()
	s.reconcile(ctx)
	buf := make([]cacher.Event, 0, 64)
	for {
		_, err := watch.Next(ctx, buf[:0])
		if ctx.Err() != nil {
			return nil
		}
		if err != nil { // fell behind or reloaded: the present is all that counts
			_, watch = cache.SnapshotAndWatch()
		}
		s.reconcile(ctx)
	}
}

// end stops cleaning and waits for it.
func (s *Server) end() {
	s.mu.Lock()
	var waiting []chan struct{}
	for _, d := range s.served {
		if d.cleaning != nil {
			d.cleaning()
			waiting = append(waiting, d.cleaned)
		}
	}
	s.mu.Unlock()
	for _, done := range waiting {
		<-done
	}
}

func (s *Server) list() []*apiextensionsv1.CustomResourceDefinition {
	objects, err := s.rest.List(definitions, "")
	if err != nil {
		return nil
	}
	out := make([]*apiextensionsv1.CustomResourceDefinition, len(objects))
	for i, obj := range objects {
		out[i] = obj.(*apiextensionsv1.CustomResourceDefinition)
	}
	return out
}

// reconcile brings what is served, and the statuses, in line with the definitions.
func (s *Server) reconcile(ctx context.Context) {
	all := s.list()
	there := make(map[string]bool, len(all))
	for _, crd := range all {
		there[crd.Name] = true
		if s.settled[crd.Name] == crd {
			continue
		}
		if err := s.one(ctx, crd, all); err != nil && ctx.Err() == nil {
			s.log.Error("custom resource cannot be served", base.KeyName, crd.Name, base.KeyError, err)
		}
	}
	for name := range s.settled {
		if !there[name] {
			delete(s.settled, name)
		}
	}
	s.mu.Lock()
	var gone []*served
	for name, d := range s.served {
		if !there[name] {
			gone = append(gone, d)
			delete(s.served, name)
			s.forgetKindsLocked(d.crd)
		}
	}
	s.mu.Unlock()
	for _, d := range gone {
		if d.objects != nil {
			s.rest.Remove(d.objects)
		}
	}
}

// one deals with one definition.
func (s *Server) one(ctx context.Context, crd *apiextensionsv1.CustomResourceDefinition, all []*apiextensionsv1.CustomResourceDefinition) error {
	wanted := new(apiextensionsv1.CustomResourceDefinition)
	*wanted = *crd
	crd.Status.DeepCopyInto(&wanted.Status)
	judge(wanted, all)
	if apihelpers.IsCRDConditionTrue(wanted, apiextensionsv1.Established) {
		// Whoever reads that it is established finds it served.
		if err := s.serve(ctx, wanted); err != nil {
			return err
		}
	}
	if !equality.Semantic.DeepEqual(crd.Status, wanted.Status) {
		return s.write(ctx, crd.Name, func(current *apiextensionsv1.CustomResourceDefinition) { judge(current, s.list()) })
	}
	if crd.DeletionTimestamp != nil && apihelpers.CRDHasFinalizer(crd, apiextensionsv1.CustomResourceCleanupFinalizer) {
		s.clean(ctx, crd)
		return nil
	}
	if apihelpers.IsCRDConditionTrue(crd, apiextensionsv1.NamesAccepted) {
		s.settled[crd.Name] = crd
	}
	return nil
}

// write changes the status (and finalizers) of a definition that still exists.
func (s *Server) write(ctx context.Context, name string, change func(*apiextensionsv1.CustomResourceDefinition)) error {
	objects := s.rest.Objects(definitions)
	_, _, err := objects.Update(ctx, "", name, func(current runtime.Object) (runtime.Object, error) {
		out := current.DeepCopyObject().(*apiextensionsv1.CustomResourceDefinition)
		change(out)
		return out, objects.Note(current, out, "status")
	}, rest.Write{Strategy: registry.Funcs[*apiextensionsv1.CustomResourceDefinition]{}, Subresource: "status", Internal: true})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// serve makes the resource of a definition, unless it is served as it is already.
func (s *Server) serve(ctx context.Context, crd *apiextensionsv1.CustomResourceDefinition) error {
	s.mu.RLock()
	now := s.served[crd.Name]
	s.mu.RUnlock()
	if now != nil && now.objects != nil && now.crd.UID == crd.UID &&
		equality.Semantic.DeepEqual(now.crd.Status.AcceptedNames, crd.Status.AcceptedNames) &&
		(now.crd.Generation == crd.Generation || equality.Semantic.DeepEqual(now.crd.Spec, crd.Spec)) { // deletion raises the generation, too
		return nil
	}
	r, versions, err := resource(crd, webhook.Services{Objects: s.rest, Metrics: s.rest.Metrics()}, func() bool {
		current, err := s.rest.Get(definitions, "", crd.Name)
		return err != nil || current.(*apiextensionsv1.CustomResourceDefinition).DeletionTimestamp != nil
	})
	if err != nil {
		return err
	}
	next := &served{crd: crd}
	if now != nil && now.objects != nil {
		next.cleaning, next.cleaned = now.cleaning, now.cleaned
		if next.objects, err = s.rest.Replace(now.objects, r); err != nil {
			return err
		}
	} else {
		if s.rest.Objects(r.GVR) != nil {
			return fmt.Errorf("%s is a built-in resource", r.GVR)
		}
		if next.objects, err = s.rest.Add(ctx, r); err != nil {
			return err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if now != nil {
		s.forgetKindsLocked(now.crd)
	}
	s.served[crd.Name] = next
	for _, v := range versions {
		s.kinds[v.gvk] = v
	}
	return nil
}

func (s *Server) forgetKindsLocked(crd *apiextensionsv1.CustomResourceDefinition) {
	for gvk := range s.kinds {
		if gvk.Group == crd.Spec.Group && gvk.Kind == crd.Status.AcceptedNames.Kind {
			delete(s.kinds, gvk)
		}
	}
}
