package certificate

import (
	"crypto/x509"
	"net/http"
	"sync/atomic"
	"time"

	"k8s.io/apiserver/pkg/authentication/authenticator"
	x509request "k8s.io/apiserver/pkg/authentication/request/x509"
	"k8s.io/utils/lru"
)

// remembered bounds the certificates that are remembered, rememberFor for how long.
const (
	remembered  = 4096
	rememberFor = time.Minute
)

// Authenticator accepts client certificates of its authorities. Make it with New.
type Authenticator struct {
	roots  atomic.Pointer[x509.CertPool]
	verify *x509request.Authenticator
	known  atomic.Pointer[lru.Cache] // verdicts by *x509.Certificate, of these roots
}

var _ authenticator.Request = (*Authenticator)(nil)

type verdict struct {
	resp  *authenticator.Response
	until time.Time
}

// New returns an authenticator of certificates that roots have issued.
func New(roots *x509.CertPool) *Authenticator {
	a := &Authenticator{}
	a.verify = x509request.NewDynamic(func() (x509.VerifyOptions, bool) {
		o := x509request.DefaultVerifyOptions()
		o.Roots = a.roots.Load()
		return o, o.Roots != nil
	}, x509request.CommonNameUserConversion)
	a.Trust(roots)
	return a
}

// Trust replaces the authorities.
func (a *Authenticator) Trust(roots *x509.CertPool) {
	a.roots.Store(roots)
	a.known.Store(lru.New(remembered))
}

// Roots are the authorities.
func (a *Authenticator) Roots() *x509.CertPool { return a.roots.Load() }

// AuthenticateRequest implements authenticator.Request.
func (a *Authenticator) AuthenticateRequest(r *http.Request) (*authenticator.Response, bool, error) {
	if r.TLS == nil || len(r.TLS.PeerCertificates) == 0 {
		return nil, false, nil
	}
	// All requests of a connection have the same certificate in memory.
	leaf, known := r.TLS.PeerCertificates[0], a.known.Load()
	if found, ok := known.Get(leaf); ok {
		if v := found.(verdict); time.Now().Before(v.until) {
			return v.resp, true, nil
		}
	}
	resp, ok, err := a.verify.AuthenticateRequest(r)
	if ok && err == nil {
		until := time.Now().Add(rememberFor)
		if leaf.NotAfter.Before(until) {
			until = leaf.NotAfter
		}
		known.Add(leaf, verdict{resp, until})
	}
	return resp, ok, err
}
