package source

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"sync"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"github.com/periplus/periplus/volume"
)

const (
	// A request that has not been seen for so long has been deleted.
	abandonAfter = 10 * time.Minute
	// A certificate that is not renewed for so long after it should be is overdue.
	overdueAfter = 10 * time.Minute
	// Requests and renewals of pods that started together are spread over this time.
	spread = 5 * time.Minute
)

var errNotIssued = errors.New("credential bundle is not issued yet")

// requests are the PodCertificateRequests of this node.
type requests struct{ many }

func (s *Source) watchRequests() *requests {
	ctx, j := s.newSubject()
	r := &requests{many{subject: j, notify: s.notify, refer: func(o metav1.Object) volume.Ref {
		ref := volume.Ref{Kind: volume.KindPodCertificate, Namespace: o.GetNamespace()}
		if q, ok := o.(*certificatesv1.PodCertificateRequest); ok {
			ref.Name = q.Spec.PodName
		}
		return ref
	}}}
	all := s.config.Client.CertificatesV1().PodCertificateRequests(metav1.NamespaceAll)
	ours := func() (string, error) {
		n, err := s.config.Node()
		if err != nil {
			return "", err
		}
		return fields.OneTermEqualSelector("spec.nodeName", n.Name).String(), nil
	}
	s.follow(ctx, &r.many, "certificate requests of pods", &certificatesv1.PodCertificateRequest{}, cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (_ runtime.Object, err error) {
			if o.FieldSelector, err = ours(); err != nil {
				return nil, err
			}
			return all.List(ctx, o)
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (_ watch.Interface, err error) {
			if o.FieldSelector, err = ours(); err != nil {
				return nil, err
			}
			return all.Watch(ctx, o)
		},
	})
	return r
}

// credentials keeps the certificates of the node's pods in memory: a later life of the
// kubelet asks for new ones.
type credentials struct {
	mu    sync.Mutex // guards byPod
	byPod map[types.UID]map[volume.Projection]*credential
}

// at returns the credential of a projection, which may be empty.
func (c *credentials) at(uid types.UID, at volume.Projection) *credential {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.byPod == nil {
		c.byPod = map[types.UID]map[volume.Projection]*credential{}
	}
	if c.byPod[uid] == nil {
		c.byPod[uid] = map[volume.Projection]*credential{}
	}
	if c.byPod[uid][at] == nil {
		c.byPod[uid][at] = &credential{}
	}
	return c.byPod[uid][at]
}

func (c *credentials) drop(uid types.UID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.byPod, uid)
}

// A credential is one certificate's life: asked for, issued, asked for anew while the
// old one still serves; or refused for good.
type credential struct {
	mu sync.Mutex // held while it is worked on

	issued
	asked     string // the request under way, or ""
	askedKey  []byte
	abandonAt time.Time
	refused   error // for good
}

// issued is a certificate and what is known of its time.
type issued struct {
	key, chain  []byte // nil: there is none yet
	dueAt       time.Time
	renewAt     time.Time // dueAt, spread
	notAfter    time.Time
	toldOverdue bool
	toldExpired bool
}

// Credential implements volume.Sources.
func (s *Source) Credential(ctx context.Context, pod *corev1.Pod, at volume.Projection, p *corev1.PodCertificateProjection) (volume.Credential, error) {
	s.mu.Lock()
	seen := s.requests
	s.mu.Unlock()
	if seen == nil {
		return volume.Credential{}, errors.New("no pod on this node is known to ask for a certificate")
	}
	c := s.credentials.at(pod.UID, at)
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	if c.asked != "" {
		q, ok := seen.get(pod.Namespace, c.asked).(*certificatesv1.PodCertificateRequest)
		switch {
		case ok:
			s.settle(c, pod, q)
		case now.After(c.abandonAt):
			c.asked, c.askedKey = "", nil
		}
	}
	if c.refused != nil {
		return volume.Credential{}, c.refused
	}
	if c.asked == "" && (c.key == nil || !now.Before(c.renewAt)) {
		if err := s.ask(ctx, c, pod, p); err != nil {
			if c.key == nil {
				return volume.Credential{}, err
			}
			s.config.Log.Warn("the certificate of a pod cannot be renewed, the old one is kept", "pod", pod.Namespace+"/"+pod.Name, "error", err)
		}
	}
	if c.key == nil {
		return volume.Credential{}, errNotIssued
	}
	return volume.Credential{Key: c.key, Chain: c.chain, LookAt: s.watchOver(c, pod, now)}, nil
}

// settle takes over how a request ended, if it has.
func (s *Source) settle(c *credential, pod *corev1.Pod, q *certificatesv1.PodCertificateRequest) {
	for _, x := range q.Status.Conditions {
		switch x.Type {
		case certificatesv1.PodCertificateRequestConditionTypeDenied:
			c.refused = fmt.Errorf("PodCertificateRequest was permanently denied: reason=%q message=%q", x.Reason, x.Message)
		case certificatesv1.PodCertificateRequestConditionTypeFailed:
			c.refused = fmt.Errorf("PodCertificateRequest was permanently failed: reason=%q message=%q", x.Reason, x.Message)
		case certificatesv1.PodCertificateRequestConditionTypeIssued:
			c.issued = issued{key: c.askedKey, chain: onlyCertificates(q.Status.CertificateChain)}
			c.asked, c.askedKey = "", nil
			if t := q.Status.BeginRefreshAt; t != nil {
				c.dueAt, c.renewAt = t.Time, t.Add(jitter())
			}
			if t := q.Status.NotAfter; t != nil {
				c.notAfter = t.Time
			}
			return
		default:
			continue
		}
		c.asked, c.askedKey = "", nil
		s.tell(pod, x.Type, fmt.Sprintf("PodCertificateRequest %s/%s %s, reason=%q, message=%q", q.Namespace, q.Name, refusal[x.Type], x.Reason, x.Message))
		return
	}
}

var refusal = map[string]string{
	certificatesv1.PodCertificateRequestConditionTypeDenied: "denied",
	certificatesv1.PodCertificateRequestConditionTypeFailed: "failed",
}

// ask makes a key and requests a certificate for it.
func (s *Source) ask(ctx context.Context, c *credential, pod *corev1.Pod, p *corev1.PodCertificateProjection) error {
	node, err := s.config.Node()
	if err != nil {
		return fmt.Errorf("while getting node object from local cache: %w", err)
	}
	account, err := s.config.Client.CoreV1().ServiceAccounts(pod.Namespace).Get(ctx, pod.Spec.ServiceAccountName, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("while fetching service account: %w", err)
	}
	key, proof, err := newKey(p.KeyType)
	if err != nil {
		return err
	}
	q, err := s.config.Client.CertificatesV1().PodCertificateRequests(pod.Namespace).Create(ctx, &certificatesv1.PodCertificateRequest{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: pod.Namespace, GenerateName: "req-",
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: pod.Name, UID: pod.UID}},
		},
		Spec: certificatesv1.PodCertificateRequestSpec{
			SignerName: p.SignerName, PodName: pod.Name, PodUID: pod.UID,
			ServiceAccountName: pod.Spec.ServiceAccountName, ServiceAccountUID: account.UID,
			NodeName: types.NodeName(node.Name), NodeUID: node.UID,
			MaxExpirationSeconds: p.MaxExpirationSeconds, StubPKCS10Request: proof, UnverifiedUserAnnotations: p.UserAnnotations,
		},
	}, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("while creating PodCertificateRequest: %w", err)
	}
	c.asked, c.askedKey, c.abandonAt = q.Name, key, time.Now().Add(abandonAfter+jitter())
	return nil
}

// watchOver tells of a certificate that is overdue or has expired, and returns when to
// look at it again.
func (s *Source) watchOver(c *credential, pod *corev1.Pod, now time.Time) time.Time {
	overdue := c.dueAt.Add(overdueAfter)
	if now.After(overdue) && !c.toldOverdue {
		c.toldOverdue = true
		s.tell(pod, "CertificateOverdueForRefresh", "PodCertificate refresh overdue")
	}
	if now.After(c.notAfter) && !c.toldExpired {
		c.toldExpired = true
		s.tell(pod, "CertificateExpired", "PodCertificate expired")
	}
	next := now.Add(overdueAfter) // what is asked for anew, or could not be
	for _, t := range []time.Time{c.renewAt, overdue, c.notAfter} {
		if t.After(now) && (t.Equal(c.renewAt) || t.Before(next)) {
			return t.Add(time.Second)
		}
	}
	return next
}

func (s *Source) tell(pod *corev1.Pod, reason, message string) {
	if s.config.Event != nil {
		s.config.Event(pod, reason, message)
	}
}

func jitter() time.Duration { return mathrand.N(spread) } //nolint:gosec // not a secret

// newKey returns a private key in PEM, and the request signed with it that proves that
// we have it.
func newKey(kind string) (key, proof []byte, err error) {
	var private crypto.Signer
	switch kind {
	case "RSA3072":
		private, err = rsa.GenerateKey(rand.Reader, 3072)
	case "RSA4096":
		private, err = rsa.GenerateKey(rand.Reader, 4096)
	case "ECDSAP256":
		private, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	case "ECDSAP384":
		private, err = ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	case "ECDSAP521":
		private, err = ecdsa.GenerateKey(elliptic.P521(), rand.Reader)
	case "ED25519":
		_, private, err = ed25519.GenerateKey(rand.Reader)
	default:
		err = fmt.Errorf("unknown key type %q", kind)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("while generating keypair: %w", err)
	}
	if proof, err = x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{}, private); err != nil {
		return nil, nil, fmt.Errorf("while generating stub PKCS#10 request: %w", err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		return nil, nil, fmt.Errorf("while marshaling key to PKCS#8: %w", err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), proof, nil
}

// onlyCertificates drops what is between the certificates of a chain, and their headers.
func onlyCertificates(chain string) []byte {
	var out []byte
	for block, rest := pem.Decode([]byte(chain)); block != nil; block, rest = pem.Decode(rest) {
		out = append(out, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: block.Bytes})...)
	}
	return out
}
