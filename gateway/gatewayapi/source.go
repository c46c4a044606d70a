package gatewayapi

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/periplus/periplus/base"
	"github.com/periplus/periplus/client"
	"github.com/periplus/periplus/gateway"
)

// Config is what the source works with.
type Config struct {
	// Client reads the objects and writes statuses.
	Client dynamic.Interface
	// Metadata tells when the kinds are there; nil: they are.
	Metadata metadata.Interface
	// Informers of Namespaces, for listeners that choose by labels.
	Informers informers.SharedInformerFactory
	// MakeClass makes the class "periplus" when its kind is there.
	MakeClass bool
	// Events gets what users must know about their objects; nil: nothing.
	Events record.EventRecorder
	Log    *slog.Logger
}

// Source makes configuration from Gateways and their routes.
type Source struct {
	cfg     Config
	changed func()

	mu sync.Mutex // guards the following
	// informers are those that run, by resource.
	informers map[schema.GroupVersionResource]cache.SharedIndexInformer
	// namespaces is nil until a listener chooses by labels.
	namespaces cache.SharedIndexInformer
	more       chan struct{} // closed when there is a Gateway: the other kinds are needed

	last *state // what Build has found, for Report
}

var _ gateway.Source = (*Source)(nil)

// New returns the source.
func New(cfg Config) *Source {
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	return &Source{cfg: cfg, informers: map[schema.GroupVersionResource]cache.SharedIndexInformer{}}
}

// definition is the object that says that the API is there.
const definition = "gateways.gateway.networking.k8s.io"

// Run implements gateway.Source.
func (s *Source) Run(ctx context.Context, synced, changed func()) error {
	s.changed = changed
	if s.cfg.Metadata == nil {
		return s.follow(ctx, synced)
	}
	there := metadatainformer.NewFilteredMetadataInformer(s.cfg.Metadata, definitions, metav1.NamespaceAll, 0, cache.Indexers{}, func(o *metav1.ListOptions) {
		o.FieldSelector = fields.OneTermEqualSelector("metadata.name", definition).String()
	}).Informer()
	turns := make(chan bool, 16)
	if _, err := there.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: func(any) { turns <- true }, DeleteFunc: func(any) { turns <- false },
	}); err != nil {
		return err
	}
	var running sync.WaitGroup
	defer running.Wait()
	running.Go(func() { client.RunInformer(ctx, there) })
	select {
	case <-there.HasSyncedChecker().Done():
		if len(there.GetStore().ListKeys()) == 0 {
			synced() // nothing to wait for
		}
	case <-ctx.Done():
		return nil
	}
	end := func() {}
	defer func() { end() }()
	for {
		select {
		case <-ctx.Done():
			return nil
		case is := <-turns:
			end()
			if !is {
				end = func() {}
				s.forget()
				continue
			}
			inner, cancel := context.WithCancel(ctx)
			done := make(chan struct{})
			end = func() { cancel(); <-done }
			go func() {
				defer close(done)
				if err := s.follow(inner, synced); err != nil {
					s.cfg.Log.Error("The Gateway API cannot be followed", base.KeyError, err)
				}
			}()
		}
	}
}

func (s *Source) forget() {
	s.mu.Lock()
	clear(s.informers)
	s.mu.Unlock()
	s.changed()
}

// follow reads classes and Gateways, and the other kinds from the first Gateway on.
func (s *Source) follow(ctx context.Context, synced func()) error {
	s.mu.Lock()
	s.more = make(chan struct{})
	more := s.more
	s.mu.Unlock()
	var running sync.WaitGroup
	defer running.Wait()
	if s.cfg.Metadata != nil {
		for _, name := range []string{"gatewayclasses." + gatewayv1.GroupName, definition} {
			if err := served(ctx, s.cfg.Client, name); err != nil {
				if ctx.Err() != nil {
					return nil
				}
				return err
			}
		}
	}
	for _, r := range []schema.GroupVersionResource{classes, gateways} {
		if err := s.inform(ctx, &running, r); err != nil || ctx.Err() != nil {
			return err
		}
	}
	if len(s.objects(gateways)) == 0 {
		synced()
	}
	if s.cfg.MakeClass {
		if err := s.makeClass(ctx); err != nil && ctx.Err() == nil {
			s.cfg.Log.Warn("The default class of Gateways could not be made", base.KeyName, Class, base.KeyError, err)
		}
	}
	select {
	case <-more:
	case <-ctx.Done():
		return nil
	}
	for _, r := range []schema.GroupVersionResource{grants, grpcRoutes, httpRoutes} {
		if s.cfg.Metadata != nil && served(ctx, s.cfg.Client, r.Resource+"."+r.Group) != nil {
			continue // somebody has an API without this kind
		}
		if err := s.inform(ctx, &running, r); err != nil || ctx.Err() != nil {
			return err
		}
	}
	synced()
	s.changed()
	<-ctx.Done()
	return nil
}

// makeClass makes the class that every cluster has; one that exists stays as it is.
func (s *Source) makeClass(ctx context.Context) error {
	class := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": gatewayv1.GroupVersion.String(), "kind": "GatewayClass", "metadata": map[string]any{"name": Class},
		"spec": map[string]any{"controllerName": Controller, "description": "Gateways that Periplus serves on every node"},
	}}
	_, err := s.cfg.Client.Resource(classes).Create(ctx, class, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}

// inform runs an informer and returns when it knows the objects that exist.
func (s *Source) inform(ctx context.Context, running *sync.WaitGroup, r schema.GroupVersionResource) error {
	i := dynamicinformer.NewFilteredDynamicInformer(s.cfg.Client, r, metav1.NamespaceAll, 0, cache.Indexers{}, nil).Informer()
	if err := i.SetTransform(typed(r)); err != nil {
		return fmt.Errorf("follow %s: %w", r.Resource, err)
	}
	s.mu.Lock()
	s.informers[r] = i
	s.mu.Unlock()
	if _, err := i.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: func(any) { s.seen(r) }, DeleteFunc: func(any) { s.seen(r) },
		UpdateFunc: func(old, obj any) {
			a, b := old.(metav1.Object), obj.(metav1.Object)
			if a.GetUID() == b.GetUID() && a.GetGeneration() == b.GetGeneration() && a.GetGeneration() != 0 {
				return // a status: ours, most likely
			}
			s.seen(r)
		},
	}); err != nil {
		return err
	}
	running.Go(func() { client.RunInformer(ctx, i) })
	select {
	case <-i.HasSyncedChecker().Done():
	case <-ctx.Done():
	}
	return nil
}

func (s *Source) seen(r schema.GroupVersionResource) {
	if r == gateways {
		s.mu.Lock()
		select {
		case <-s.more:
		default:
			close(s.more)
		}
		s.mu.Unlock()
	}
	s.changed()
}

// objects are those of a resource, the oldest first.
func (s *Source) objects(r schema.GroupVersionResource) []metav1.Object {
	s.mu.Lock()
	i := s.informers[r]
	s.mu.Unlock()
	if i == nil {
		return nil
	}
	list := i.GetStore().List()
	out := make([]metav1.Object, 0, len(list))
	for _, o := range list {
		if m, ok := o.(metav1.Object); ok {
			out = append(out, m)
		}
	}
	slices.SortFunc(out, func(a, b metav1.Object) int {
		ta, tb := a.GetCreationTimestamp(), b.GetCreationTimestamp()
		if c := ta.Compare(tb.Time); c != 0 {
			return c
		}
		return strings.Compare(a.GetNamespace()+"/"+a.GetName(), b.GetNamespace()+"/"+b.GetName())
	})
	return out
}

// Active implements gateway.Source: there is a Gateway, or a class that waits to hear
// that it is ours.
func (s *Source) Active() bool {
	if len(s.objects(gateways)) > 0 {
		return true
	}
	for _, c := range s.ourClasses() {
		if !meta.IsStatusConditionTrue(c.Status.Conditions, string(gatewayv1.GatewayClassConditionStatusAccepted)) {
			return true
		}
	}
	return false
}

// ourClasses are the names of the classes of this controller.
func (s *Source) ourClasses() map[string]*gatewayv1.GatewayClass {
	out := map[string]*gatewayv1.GatewayClass{}
	for _, o := range s.objects(classes) {
		if c, ok := o.(*gatewayv1.GatewayClass); ok && c.Spec.ControllerName == Controller {
			out[c.Name] = c
		}
	}
	return out
}

// errNoNamespace is returned while a namespace is not known.
var errNoNamespace = errors.New("namespace is not known")

// namespaceLabels returns the labels of a namespace; from the first time on,
// namespaces are followed.
func (s *Source) namespaceLabels(name string) (map[string]string, error) {
	if s.cfg.Informers == nil {
		return nil, errNoNamespace
	}
	n := s.cfg.Informers.Core().V1().Namespaces()
	if s.namespaces == nil {
		s.namespaces = n.Informer()
		if _, err := s.namespaces.AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc: func(any) { s.changed() },
			UpdateFunc: func(old, obj any) {
				if !sameLabels(old.(*corev1.Namespace).Labels, obj.(*corev1.Namespace).Labels) {
					s.changed()
				}
			},
		}); err != nil {
			return nil, err
		}
	}
	ns, err := n.Lister().Get(name)
	if err != nil {
		return nil, errNoNamespace
	}
	return ns.Labels, nil
}

func sameLabels(a, b map[string]string) bool {
	if len(a) != len(b) {
		return false
	}
	for k, v := range a {
		if b[k] != v {
			return false
		}
	}
	return true
}
