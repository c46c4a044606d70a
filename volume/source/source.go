package source

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/periplus/periplus/volume"
)

// How long a reader waits for the first answer of the API server.
const firstAnswer = 10 * time.Second

// Config of a Source.
type Config struct {
	Client kubernetes.Interface
	// Informers, if not nil, gives shared informers of ConfigMaps and Secrets of all
	// namespaces. The caller starts them after New.
	Informers informers.SharedInformerFactory
	// Node returns the node's own object.
	Node func() (*corev1.Node, error)
	// Status returns the newest known status of a pod, nil means the pod's own.
	Status func(*corev1.Pod) corev1.PodStatus
	// Changed is called when an object that a pod may refer to was added, changed
	// or deleted; usually volume.Host.SourceChanged. It must not block. See OnChange.
	Changed func(kind, namespace, name string)
	// Memory, if not nil, lets pods start without the API server.
	Memory Memory
	// Event, if not nil, tells of a pod's certificate that was refused or nears its end.
	Event func(pod *corev1.Pod, reason, message string)
	// Log defaults to slog.Default().
	Log *slog.Logger
}

// A Memory keeps what was read for a start without the API server.
type Memory interface {
	// Remember returns a source of the one object that says what lw says and, until lw
	// answers, what it said in an earlier life.
	Remember(ref volume.Ref, lw cache.ListerWatcher) cache.ListerWatcher
	// Forget is called when no pod refers to the object any more.
	Forget(ref volume.Ref)
}

// A Source is a volume.Sources and a volume.Tracker.
type Source struct {
	config      Config
	changed     atomic.Pointer[func(kind, namespace, name string)]
	informed    *informed // nil: one watch per object
	tokens      tokens
	credentials credentials
	ctx         context.Context //nolint:containedctx // the life of all watches, ended by Close
	cancel      context.CancelFunc
	running     sync.WaitGroup

	mu       sync.Mutex // guards what follows
	pods     map[types.UID][]volume.Ref
	objs     map[volume.Ref]*watched
	bundles  *bundles  // nil while no pod refers to one
	requests *requests // nil while no pod asks for a certificate
}

var (
	_ volume.Sources = (*Source)(nil)
	_ volume.Tracker = (*Source)(nil)
)

// New returns a Source. Close ends its watches.
func New(c Config) (*Source, error) {
	if c.Client == nil || c.Node == nil {
		return nil, errors.New("volume/source: config: Client and Node must be set")
	}
	if c.Log == nil {
		c.Log = slog.Default()
	}
	s := &Source{
		config: c,
		pods:   map[types.UID][]volume.Ref{},
		objs:   map[volume.Ref]*watched{},
	}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	s.OnChange(c.Changed)
	if c.Informers != nil {
		var err error
		if s.informed, err = newInformed(c.Informers, s.notify); err != nil {
			return nil, fmt.Errorf("volume/source: %w", err)
		}
	}
	return s, nil
}

// OnChange sets Config.Changed afterwards, for the Host that is made from this Source.
func (s *Source) OnChange(f func(kind, namespace, name string)) { s.changed.Store(&f) }

func (s *Source) notify(ref volume.Ref) {
	if f := *s.changed.Load(); f != nil {
		f(ref.Kind, ref.Namespace, ref.Name)
	}
}

// Close ends all watches and waits for them.
func (s *Source) Close() {
	s.cancel()
	s.running.Wait()
}

// AddPod implements volume.Tracker.
func (s *Source) AddPod(pod *corev1.Pod) {
	inVolumes, elsewhere := volume.References(pod)
	now := unique(inVolumes, elsewhere)
	if s.informed != nil {
		now = slices.DeleteFunc(now, func(r volume.Ref) bool { return r.Kind == volume.KindConfigMap || r.Kind == volume.KindSecret })
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	before := s.pods[pod.UID]
	if len(before) == 0 && len(now) == 0 {
		return
	}
	s.pods[pod.UID] = now
	for _, ref := range now { // first add, then drop: what is in both goes on
		s.subjectLocked(ref).users++
	}
	s.dropLocked(before)
}

// subjectLocked is what is watched for a reference; the watch begins with the first.
func (s *Source) subjectLocked(ref volume.Ref) *subject {
	switch ref.Kind {
	case volume.KindTrustBundle:
		if s.bundles == nil {
			s.bundles = s.watchBundles()
		}
		return &s.bundles.subject
	case volume.KindPodCertificate:
		if s.requests == nil {
			s.requests = s.watchRequests()
		}
		return &s.requests.subject
	}
	w := s.objs[ref]
	if w == nil {
		w = s.watch(ref)
		s.objs[ref] = w
	}
	return &w.subject
}

// RemovePod implements volume.Tracker.
func (s *Source) RemovePod(uid types.UID) {
	s.tokens.drop(uid)
	s.credentials.drop(uid)
	s.mu.Lock()
	defer s.mu.Unlock()
	before := s.pods[uid]
	delete(s.pods, uid)
	s.dropLocked(before)
}

func (s *Source) dropLocked(refs []volume.Ref) {
	for _, ref := range refs {
		j := s.subjectLocked(ref)
		if j.users--; j.users > 0 {
			continue
		}
		j.stop()
		switch ref.Kind {
		case volume.KindTrustBundle:
			s.bundles = nil
		case volume.KindPodCertificate:
			s.requests = nil
		default:
			delete(s.objs, ref)
			if s.config.Memory != nil {
				s.config.Memory.Forget(ref)
			}
		}
	}
}

func unique(a, b []volume.Ref) []volume.Ref {
	seen := make(map[volume.Ref]bool, len(a)+len(b))
	out := make([]volume.Ref, 0, len(a)+len(b))
	for _, list := range [][]volume.Ref{a, b} {
		for _, ref := range list {
			if !seen[ref] {
				seen[ref] = true
				out = append(out, ref)
			}
		}
	}
	return out
}

// ConfigMap implements volume.Sources. It waits for the first answer of a watch that has just begun.
func (s *Source) ConfigMap(namespace, name string) (*corev1.ConfigMap, error) {
	return get(s, volume.Ref{Kind: volume.KindConfigMap, Namespace: namespace, Name: name}, "configmap",
		func(ctx context.Context) (*corev1.ConfigMap, error) {
			return s.config.Client.CoreV1().ConfigMaps(namespace).Get(ctx, name, metav1.GetOptions{})
		})
}

// Secret implements volume.Sources, like ConfigMap.
func (s *Source) Secret(namespace, name string) (*corev1.Secret, error) {
	return get(s, volume.Ref{Kind: volume.KindSecret, Namespace: namespace, Name: name}, "secret",
		func(ctx context.Context) (*corev1.Secret, error) {
			return s.config.Client.CoreV1().Secrets(namespace).Get(ctx, name, metav1.GetOptions{})
		})
}

// get reads from what is watched. What is not there is asked for once more: the
// object may be newer than our watch, because the pod came by another one.
func get[T any](s *Source, ref volume.Ref, kind string, live func(context.Context) (*T, error)) (*T, error) {
	obj, err := s.cached(ref, kind)
	if err != nil {
		return nil, err
	}
	if typed, ok := obj.(*T); ok && typed != nil {
		return typed, nil
	}
	ctx, cancel := context.WithTimeout(s.ctx, firstAnswer)
	defer cancel()
	found, err := live(ctx)
	if apierrors.IsNotFound(err) {
		// In the words that upstream's kubelet uses, "configmap", not "configmaps".
		return nil, apierrors.NewNotFound(corev1.Resource(kind), ref.Name)
	}
	if err != nil {
		return nil, err
	}
	return found, nil
}

// cached returns nil if the object is known to be absent, or is not watched.
func (s *Source) cached(ref volume.Ref, kind string) (any, error) {
	if s.informed != nil {
		return s.informed.get(ref), nil
	}
	s.mu.Lock()
	w := s.objs[ref]
	s.mu.Unlock()
	if w == nil {
		return nil, nil
	}
	if err := w.wait(s.ctx, kind); err != nil {
		return nil, err
	}
	return w.get(), nil
}

// Node implements volume.Sources.
func (s *Source) Node() (*corev1.Node, error) { return s.config.Node() }

// PodStatus implements volume.Sources.
func (s *Source) PodStatus(pod *corev1.Pod) corev1.PodStatus {
	if s.config.Status != nil {
		return s.config.Status(pod)
	}
	return pod.Status
}
