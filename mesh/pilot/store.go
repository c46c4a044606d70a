package pilot

import (
	"log/slog"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"

	"github.com/periplus/periplus/base"
	"github.com/periplus/periplus/mesh/config"
	"github.com/periplus/periplus/mesh/crd"
)

// A store keeps Istio's resources as values, as they come from informers.
type store struct {
	log     *slog.Logger
	changed func()

	mu               sync.Mutex // guards the following
	virtualServices  map[string]*config.VirtualService
	destinationRules map[string]*config.DestinationRule
	peers            map[string]*config.PeerAuthentication
	policies         map[string]*config.AuthorizationPolicy
}

func newStore(log *slog.Logger, changed func()) *store {
	return &store{
		log: log, changed: changed,
		virtualServices: map[string]*config.VirtualService{}, destinationRules: map[string]*config.DestinationRule{},
		peers: map[string]*config.PeerAuthentication{}, policies: map[string]*config.AuthorizationPolicy{},
	}
}

// put reads an object into one of the maps. One that cannot be read leaves the last
// that could: a mistake must not take routes away.
func put[T any](s *store, m map[string]T, obj any, read func(*unstructured.Unstructured) (T, error)) {
	u, ok := obj.(*unstructured.Unstructured)
	if !ok {
		return
	}
	key := u.GetNamespace() + "/" + u.GetName()
	v, err := read(u)
	if err != nil {
		s.log.Warn("an object of the mesh cannot be read and is left out", base.KeyKind, u.GetKind(), base.KeyKey, key, base.KeyError, err)
		return
	}
	s.mu.Lock()
	m[key] = v
	s.mu.Unlock()
	s.changed()
}

func drop[T any](s *store, m map[string]T, obj any) {
	key, err := cache.DeletionHandlingMetaNamespaceKeyFunc(obj)
	if err != nil {
		return
	}
	s.mu.Lock()
	delete(m, key)
	s.mu.Unlock()
	s.changed()
}

func handler[T any](s *store, m map[string]T, read func(*unstructured.Unstructured) (T, error)) cache.ResourceEventHandler {
	return cache.ResourceEventHandlerFuncs{
		AddFunc: func(obj any) { put(s, m, obj, read) },
		UpdateFunc: func(old, obj any) {
			a, okA := old.(*unstructured.Unstructured)
			b, okB := obj.(*unstructured.Unstructured)
			if okA && okB && a.GetGeneration() == b.GetGeneration() && b.GetGeneration() != 0 {
				return // only its status or its annotations
			}
			put(s, m, obj, read)
		},
		DeleteFunc: func(obj any) { drop(s, m, obj) },
	}
}

// handlers are those of each resource.
func (s *store) handlers() map[schema.GroupVersionResource]cache.ResourceEventHandler {
	return map[schema.GroupVersionResource]cache.ResourceEventHandler{
		crd.VirtualServices:       handler(s, s.virtualServices, config.NewVirtualService),
		crd.DestinationRules:      handler(s, s.destinationRules, config.NewDestinationRule),
		crd.PeerAuthentications:   handler(s, s.peers, config.NewPeerAuthentication),
		crd.AuthorizationPolicies: handler(s, s.policies, config.NewAuthorizationPolicy),
	}
}
