package pki

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"time"
)

// A Leaf is an issued certificate with its key in <path>.crt and <path>.key. It
// is renewed in place: connections made later use the new one.
type Leaf struct {
	authority *Authority
	request   Request
	path      string
	current   atomic.Pointer[tls.Certificate]
}

// OpenLeaf reads a certificate, or issues it when there is none, or it is about
// to expire, or it is not what is asked for (other names, another authority).
func OpenLeaf(a *Authority, path string, r Request) (*Leaf, error) {
	l := &Leaf{authority: a, request: r, path: path}
	cert, err := tls.LoadX509KeyPair(path+".crt", path+".key")
	switch {
	case err == nil && l.serves(&cert):
		l.current.Store(&cert)
		return l, nil
	case err != nil && !errors.Is(err, os.ErrNotExist):
		return nil, fmt.Errorf("certificate %s.crt: %w", path, err)
	}
	return l, l.renew()
}

// serves reports whether a certificate is as wanted and not yet due.
func (l *Leaf) serves(c *tls.Certificate) bool {
	x := c.Leaf
	if x == nil || time.Now().After(due(x.NotBefore, x.NotAfter)) || x.CheckSignatureFrom(l.authority.Cert) != nil {
		return false
	}
	if x.Subject.CommonName != l.request.CommonName || !slices.Equal(x.Subject.Organization, l.request.Organizations) {
		return false
	}
	for _, name := range l.request.DNSNames {
		if !slices.Contains(x.DNSNames, name) {
			return false
		}
	}
	for _, ip := range l.request.IPs {
		if x.VerifyHostname(ip.String()) != nil {
			return false
		}
	}
	return true
}

// due is when a certificate is renewed: after two thirds of its life.
func due(from, until time.Time) time.Time { return from.Add(until.Sub(from) * 2 / 3) }

func (l *Leaf) renew() error {
	if err := os.MkdirAll(filepath.Dir(l.path), 0o700); err != nil {
		return fmt.Errorf("renew %s: %w", l.path, err)
	}
	key, err := OpenKey(l.path + ".key")
	if err != nil {
		return err
	}
	certPEM, err := l.authority.Issue(l.request, &key.PublicKey)
	if err != nil {
		return err
	}
	if err := WriteFile(l.path+".crt", certPEM, 0o644); err != nil {
		return err
	}
	keyPEM, err := KeyPEM(key)
	if err != nil {
		return err
	}
	cert, err := tls.X509KeyPair(certPEM, keyPEM)
	if err != nil {
		return fmt.Errorf("renew %s: %w", l.path, err)
	}
	l.current.Store(&cert)
	return nil
}

// Run renews the certificate when it is due, until ctx ends.
func (l *Leaf) Run(ctx context.Context) error {
	for {
		x := l.current.Load().Leaf
		timer := time.NewTimer(max(time.Until(due(x.NotBefore, x.NotAfter)), time.Minute))
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil
		case <-timer.C:
		}
		if time.Now().Before(due(x.NotBefore, x.NotAfter)) {
			continue // the clock was set back
		}
		if err := l.renew(); err != nil {
			return err
		}
	}
}

// Certificate returns the current certificate.
func (l *Leaf) Certificate() *tls.Certificate { return l.current.Load() }

// Server is for tls.Config.GetCertificate.
func (l *Leaf) Server(*tls.ClientHelloInfo) (*tls.Certificate, error) { return l.current.Load(), nil }

// Client is for tls.Config.GetClientCertificate.
func (l *Leaf) Client(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
	return l.current.Load(), nil
}
