package ingress

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync"

	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	networkinglisters "k8s.io/client-go/listers/networking/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"

	"github.com/periplus/periplus/gateway"
)

// Controller is the name that IngressClasses of this gateway have.
const Controller = "periplus.io/ingress"

// Class is the name of the class that every cluster has.
const Class = "periplus"

// classAnnotation named the class before spec.ingressClassName.
const classAnnotation = "kubernetes.io/ingress.class"

// Config is what the source works with.
type Config struct {
	// Client writes statuses.
	Client    kubernetes.Interface
	Informers informers.SharedInformerFactory
	// Events gets what users must know about an Ingress; nil: nothing.
	Events record.EventRecorder
	Log    *slog.Logger
}

// Source makes configuration from Ingresses.
type Source struct {
	cfg       Config
	ingresses cache.SharedIndexInformer
	classes   cache.SharedIndexInformer
	lister    networkinglisters.IngressLister
	classList networkinglisters.IngressClassLister

	// told are the problems that events were sent for, by Ingress.
	told map[types.UID]string
	// found are the problems of the last Build.
	found map[types.UID][]problem

	mu sync.Mutex // guards told and found
}

type problem struct{ reason, message string }

var _ gateway.Source = (*Source)(nil)

// New returns the source. Call it before the informers are started.
func New(cfg Config) *Source {
	n := cfg.Informers.Networking().V1()
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	return &Source{
		cfg: cfg, ingresses: n.Ingresses().Informer(), classes: n.IngressClasses().Informer(),
		lister: n.Ingresses().Lister(), classList: n.IngressClasses().Lister(),
		told: map[types.UID]string{},
	}
}

// Run implements gateway.Source.
func (s *Source) Run(ctx context.Context, synced, changed func()) error {
	for _, i := range []cache.SharedIndexInformer{s.classes, s.ingresses} {
		handler := cache.ResourceEventHandlerFuncs{
			AddFunc: func(any) { changed() }, DeleteFunc: func(any) { changed() },
			UpdateFunc: func(old, obj any) {
				if a, ok := old.(*networkingv1.Ingress); ok && sameSpec(a, obj.(*networkingv1.Ingress)) {
					return // a status, most likely our own
				}
				changed()
			},
		}
		r, err := i.AddEventHandler(handler)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
		defer func() { _ = i.RemoveEventHandler(r) }()
		select {
		case <-r.HasSyncedChecker().Done():
		case <-ctx.Done():
			return nil
		}
	}
	synced()
	<-ctx.Done()
	return nil
}

func sameSpec(a, b *networkingv1.Ingress) bool {
	if a.UID != b.UID || a.Generation != b.Generation || a.Generation == 0 || len(a.Annotations) != len(b.Annotations) {
		return false
	}
	for k, v := range a.Annotations {
		if b.Annotations[k] != v {
			return false
		}
	}
	return len(b.Status.LoadBalancer.Ingress) > 0
}

// Active implements gateway.Source: there is an Ingress of ours.
func (s *Source) Active() bool { return len(s.ours()) > 0 }

// ours returns the Ingresses of our classes, the oldest first.
func (s *Source) ours() []*networkingv1.Ingress {
	all, err := s.lister.List(labels.Everything())
	if err != nil || len(all) == 0 {
		return nil
	}
	classes, byDefault := s.classNames()
	out := make([]*networkingv1.Ingress, 0, len(all))
	for _, i := range all {
		class := i.Annotations[classAnnotation]
		if i.Spec.IngressClassName != nil {
			class = *i.Spec.IngressClassName
		}
		if class == "" && byDefault || slices.Contains(classes, class) {
			out = append(out, i)
		}
	}
	slices.SortFunc(out, func(a, b *networkingv1.Ingress) int {
		if c := a.CreationTimestamp.Compare(b.CreationTimestamp.Time); c != 0 {
			return c
		}
		return strings.Compare(a.Namespace+"/"+a.Name, b.Namespace+"/"+b.Name)
	})
	return out
}

// classNames returns our classes, and whether one of them is the default.
func (s *Source) classNames() (names []string, byDefault bool) {
	all, err := s.classList.List(labels.Everything())
	if err != nil {
		return nil, false
	}
	for _, c := range all {
		if c.Spec.Controller == Controller {
			names = append(names, c.Name)
			byDefault = byDefault || c.Annotations[networkingv1.AnnotationIsDefaultIngressClass] == "true"
		}
	}
	return names, byDefault
}
