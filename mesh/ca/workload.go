package ca

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"sync"
	"time"

	"github.com/periplus/periplus/l7"
	"github.com/periplus/periplus/mesh"
)

// A Workload is an identity inside of this process: the edge of the cluster, when it
// calls pods of the mesh. Its certificate is replaced, when half of its life is over,
// by the handshake that finds it so.
type Workload struct {
	authority *Authority
	id        mesh.Identity
	pool      *x509.CertPool

	mu      sync.Mutex // guards current
	current *tls.Certificate
}

var (
	_ l7.CertificateSource = (*Workload)(nil)
	_ l7.RootSource        = (*Workload)(nil)
)

// NewWorkload returns an identity; a certificate is made when it is first needed.
func NewWorkload(a *Authority, id mesh.Identity) *Workload {
	return &Workload{authority: a, id: id, pool: a.Pool()}
}

// Roots implements l7.RootSource.
func (w *Workload) Roots() (*x509.CertPool, error) { return w.pool, nil }

// Certificate implements l7.CertificateSource.
func (w *Workload) Certificate(string) (*tls.Certificate, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if c := w.current; c != nil && time.Now().Before(c.Leaf.NotBefore.Add(WorkloadLife/2)) {
		return c, nil
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	der, err := w.authority.issue(&x509.Certificate{URIs: urls(w.id)}, &key.PublicKey, WorkloadLife)
	if err != nil {
		return nil, err
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, fmt.Errorf("certificate of %s: %w", w.id, err)
	}
	root, _ := pem.Decode(w.authority.pem)
	w.current = &tls.Certificate{Certificate: [][]byte{der, root.Bytes}, PrivateKey: key, Leaf: leaf}
	return w.current, nil
}
