package sidecar

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"time"

	pb "istio.io/api/security/v1alpha1"

	"github.com/periplus/periplus/base"
	"github.com/periplus/periplus/l7"
	"github.com/periplus/periplus/mesh"
)

// Certificates is this proxy's certificate and the authority's, replaced in place:
// the next handshake uses what is newest, open connections go on.
type Certificates struct {
	id    mesh.Identity
	sign  func(ctx context.Context, csr string) ([]string, error)
	log   *slog.Logger
	first chan struct{} // closed when there is a certificate

	current atomic.Pointer[issued]
}

type issued struct {
	pair tls.Certificate
	pool *x509.CertPool
}

var (
	_ l7.CertificateSource = (*Certificates)(nil)
	_ l7.RootSource        = (*Certificates)(nil)
)

// ErrNoCertificate is returned while none has been issued.
var ErrNoCertificate = errors.New("the proxy has no certificate yet")

func newCertificates(id mesh.Identity, client pb.IstioCertificateServiceClient, log *slog.Logger) *Certificates {
	return &Certificates{id: id, log: log, first: make(chan struct{}), sign: func(ctx context.Context, csr string) ([]string, error) {
		r, err := client.CreateCertificate(ctx, &pb.IstioCertificateRequest{Csr: csr, ValidityDuration: int64(24 * time.Hour / time.Second)})
		return r.GetCertChain(), err
	}}
}

// Certificate implements l7.CertificateSource.
func (c *Certificates) Certificate(string) (*tls.Certificate, error) {
	i := c.current.Load()
	if i == nil {
		return nil, ErrNoCertificate
	}
	return &i.pair, nil
}

// Roots implements l7.RootSource.
func (c *Certificates) Roots() (*x509.CertPool, error) {
	i := c.current.Load()
	if i == nil {
		return nil, ErrNoCertificate
	}
	return i.pool, nil
}

const (
	retryFirst = 500 * time.Millisecond
	retryMost  = time.Minute
)

// Run has certificates issued until ctx ends: at once, then always when half of the
// life of the last is over.
func (c *Certificates) Run(ctx context.Context) error {
	wait := retryFirst
	for {
		next, err := c.renew(ctx)
		if err != nil {
			if ctx.Err() != nil {
				return nil
			}
			c.log.Warn("certificate could not be issued, trying again", base.KeyError, err)
			next, wait = wait, min(2*wait, retryMost)
		} else {
			wait = retryFirst
		}
		t := time.NewTimer(next)
		select {
		case <-ctx.Done():
			t.Stop()
			return nil
		case <-t.C:
		}
	}
}

// renew returns after what time the next one is due.
func (c *Certificates) renew(ctx context.Context) (time.Duration, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return 0, err
	}
	csr, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{}, key)
	if err != nil {
		return 0, err
	}
	chain, err := c.sign(ctx, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: csr})))
	if err != nil {
		return 0, err
	}
	if len(chain) < 2 {
		return 0, fmt.Errorf("the authority has sent a chain of %d certificates, need the leaf and the root", len(chain))
	}
	keyDER, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return 0, err
	}
	pair, err := tls.X509KeyPair([]byte(strings.Join(chain[:len(chain)-1], "\n")), pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: keyDER}))
	if err != nil {
		return 0, err
	}
	if got := l7.PeerOf(&tls.ConnectionState{PeerCertificates: []*x509.Certificate{pair.Leaf}}).URI; got != c.id.String() {
		return 0, fmt.Errorf("the authority has certified %q, not %q", got, c.id)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM([]byte(chain[len(chain)-1])) {
		return 0, errors.New("the authority's root certificate cannot be read")
	}
	if c.current.Swap(&issued{pair, pool}) == nil {
		close(c.first)
	}
	half := pair.Leaf.NotBefore.Add(pair.Leaf.NotAfter.Sub(pair.Leaf.NotBefore) / 2)
	c.log.Info("certificate issued", base.KeyUser, c.id.String(), "until", pair.Leaf.NotAfter.UTC().Format(time.RFC3339))
	return max(time.Until(half), time.Second), nil
}
