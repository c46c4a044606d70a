package edge

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	coreinformers "k8s.io/client-go/informers/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/periplus/periplus/base"
	"github.com/periplus/periplus/client"
	"github.com/periplus/periplus/mesh"
)

// A Follower is the Edge of a node that is no server.
type Follower struct {
	Edge
	client  kubernetes.Interface
	log     *slog.Logger
	wanted  chan struct{} // closed when the gateway has a backend
	current pair
	seen    chan struct{} // closed when there is a certificate
	pods    cache.Store
}

// NewFollower returns an edge that reads with a node's client.
func NewFollower(c kubernetes.Interface, log *slog.Logger) *Follower {
	f := &Follower{client: c, log: log, wanted: make(chan struct{}), seen: make(chan struct{})}
	f.asked = sync.OnceFunc(func() { close(f.wanted) })
	return f
}

// Run follows the Secret and then the pods until ctx ends. changed is called when
// Secure would answer otherwise than before.
func (f *Follower) Run(ctx context.Context, changed func()) error {
	select {
	case <-ctx.Done():
		return nil
	case <-f.wanted:
	}
	var running sync.WaitGroup
	defer running.Wait()
	secrets := coreinformers.NewFilteredSecretInformer(f.client, SecretNamespace, 0, cache.Indexers{}, func(o *metav1.ListOptions) {
		o.FieldSelector = fields.OneTermEqualSelector("metadata.name", SecretName).String()
	})
	found := sync.OnceFunc(func() { close(f.seen) })
	take := func(obj any) {
		s, ok := obj.(*corev1.Secret)
		if !ok {
			return
		}
		if err := f.current.take(s); err != nil {
			f.log.Error("The certificate with which the edge calls the mesh cannot be used", base.KeyError, err)
			return
		}
		found()
	}
	if _, err := secrets.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: take, UpdateFunc: func(_, obj any) { take(obj) }}); err != nil {
		return err
	}
	running.Go(func() { client.RunInformer(ctx, secrets) })
	select {
	case <-ctx.Done():
		return nil
	case <-f.seen:
	}
	return f.followPods(ctx, &running, changed)
}

// followPods keeps which pods have a sidecar, and no more of them than that.
func (f *Follower) followPods(ctx context.Context, running *sync.WaitGroup, changed func()) error {
	pods := coreinformers.NewFilteredPodInformer(f.client, metav1.NamespaceAll, 0, cache.Indexers{}, func(o *metav1.ListOptions) {
		o.LabelSelector = mesh.LabelTLS + "=" + mesh.TLSModeIstio
	})
	if err := pods.SetTransform(strip); err != nil {
		return err
	}
	// What may change of a pod is its label, and without it a pod is not here.
	r, err := pods.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: func(any) { changed() }, DeleteFunc: func(any) { changed() }})
	if err != nil {
		return err
	}
	running.Go(func() { client.RunInformer(ctx, pods) })
	select {
	case <-ctx.Done():
		return nil
	case <-r.HasSyncedChecker().Done():
	}
	f.pods = pods.GetStore()
	f.Join(&f.current, f.peer)
	changed()
	<-ctx.Done()
	return nil
}

func (f *Follower) peer(namespace, pod string) (Peer, bool) {
	obj, ok, err := f.pods.GetByKey(namespace + "/" + pod)
	if err != nil || !ok {
		return Peer{}, false
	}
	return PeerOf(obj.(*corev1.Pod)), true
}

// strip keeps of a pod what a Peer has.
func strip(obj any) (any, error) {
	p, ok := obj.(*corev1.Pod)
	if !ok {
		return obj, nil
	}
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: p.Name, Namespace: p.Namespace, UID: p.UID, ResourceVersion: p.ResourceVersion, Labels: map[string]string{mesh.LabelTLS: p.Labels[mesh.LabelTLS]}},
		Spec:       corev1.PodSpec{ServiceAccountName: p.Spec.ServiceAccountName},
	}, nil
}

// A pair is the certificate and its root, as the Secret had them last.
type pair struct {
	held atomic.Pointer[held]
}

type held struct {
	cert *tls.Certificate
	pool *x509.CertPool
}

var _ Credentials = (*pair)(nil)

func (p *pair) take(s *corev1.Secret) error {
	cert, err := tls.X509KeyPair(s.Data[corev1.TLSCertKey], s.Data[corev1.TLSPrivateKeyKey])
	if err != nil {
		return fmt.Errorf("secret %s/%s: %w", s.Namespace, s.Name, err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(s.Data[rootKey]) {
		return fmt.Errorf("secret %s/%s: %s has no certificate", s.Namespace, s.Name, rootKey)
	}
	p.held.Store(&held{&cert, pool})
	return nil
}

var errNone = errors.New("the edge has no certificate of the mesh yet")

// Certificate implements l7.CertificateSource.
func (p *pair) Certificate(string) (*tls.Certificate, error) {
	if h := p.held.Load(); h != nil {
		return h.cert, nil
	}
	return nil, errNone
}

// Roots implements l7.RootSource.
func (p *pair) Roots() (*x509.CertPool, error) {
	if h := p.held.Load(); h != nil {
		return h.pool, nil
	}
	return nil, errNone
}
