package gateway

import (
	"context"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	coreinformers "k8s.io/client-go/informers/core/v1"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
)

// secrets finds Secrets for a Build.
type secrets interface {
	get(ctx context.Context, key types.NamespacedName) (*corev1.Secret, error)
	// keep is told what the last Build has asked for.
	keep(asked map[types.NamespacedName]bool)
	close()
}

// allSecrets reads a shared informer: where all Secrets may be read.
type allSecrets struct{ lister corelisters.SecretLister }

func (a allSecrets) get(_ context.Context, key types.NamespacedName) (*corev1.Secret, error) {
	return a.lister.Secrets(key.Namespace).Get(key.Name)
}
func (allSecrets) keep(map[types.NamespacedName]bool) {}
func (allSecrets) close()                             {}

// firstWait bounds how long a Build waits for a Secret that it has not asked for before.
const firstWait = 3 * time.Second

// namedSecrets follows single Secrets: nodes may only read those that a gateway
// serves (see grants.go).
type namedSecrets struct {
	client  kubernetes.Interface
	changed func()

	mu      sync.Mutex // guards the following
	known   map[types.NamespacedName]*followedSecret
	running sync.WaitGroup
}

type followedSecret struct {
	informer cache.SharedIndexInformer
	end      context.CancelFunc
}

func newNamedSecrets(c kubernetes.Interface, changed func()) *namedSecrets {
	return &namedSecrets{client: c, changed: changed, known: map[types.NamespacedName]*followedSecret{}}
}

func (n *namedSecrets) get(ctx context.Context, key types.NamespacedName) (*corev1.Secret, error) {
	n.mu.Lock()
	f := n.known[key]
	if f == nil {
		f = n.followLocked(ctx, key)
	}
	n.mu.Unlock()
	limit, cancel := context.WithTimeout(ctx, firstWait)
	defer cancel()
	select {
	case <-f.informer.HasSyncedChecker().Done():
	case <-limit.Done(): // its event will come
	}
	obj, ok, err := f.informer.GetStore().GetByKey(key.String())
	if err != nil || !ok {
		return nil, apierrors.NewNotFound(corev1.Resource("secrets"), key.Name)
	}
	return obj.(*corev1.Secret), nil
}

func (n *namedSecrets) followLocked(ctx context.Context, key types.NamespacedName) *followedSecret {
	i := coreinformers.NewFilteredSecretInformer(n.client, key.Namespace, 0, cache.Indexers{}, func(o *metav1.ListOptions) {
		o.FieldSelector = fields.OneTermEqualSelector("metadata.name", key.Name).String()
	})
	// A new informer accepts handlers.
	_, _ = i.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: func(any) { n.changed() }, DeleteFunc: func(any) { n.changed() }, UpdateFunc: func(any, any) { n.changed() },
	})
	inner, cancel := context.WithCancel(ctx)
	f := &followedSecret{i, cancel}
	n.known[key] = f
	n.running.Go(func() { i.RunWithContext(inner) })
	return f
}

func (n *namedSecrets) keep(asked map[types.NamespacedName]bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for key, f := range n.known {
		if !asked[key] {
			f.end()
			delete(n.known, key)
		}
	}
}

func (n *namedSecrets) close() {
	n.keep(nil)
	n.running.Wait()
}
