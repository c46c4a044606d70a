package gateway

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"math/big"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/periplus/periplus/l7"
)

// A Certificate is a key pair and where it comes from.
type Certificate struct {
	tls.Certificate
	// Secret is namespace/name, Revision its resource version.
	Secret, Revision string
}

func parseCertificate(s *corev1.Secret) (*Certificate, error) {
	name := s.Namespace + "/" + s.Name
	cert, key := s.Data[corev1.TLSCertKey], s.Data[corev1.TLSPrivateKeyKey]
	if len(cert) == 0 || len(key) == 0 {
		return nil, fmt.Errorf("secret %s has no %s and %s", name, corev1.TLSCertKey, corev1.TLSPrivateKeyKey)
	}
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		// The message of the library holds no part of the key.
		return nil, fmt.Errorf("secret %s: %w", name, err)
	}
	return &Certificate{Certificate: pair, Secret: name, Revision: s.ResourceVersion}, nil
}

// certificates gives the certificate of a server name. The table is replaced as a
// whole: handshakes after that get the new ones, connections go on.
type certificates struct {
	table atomic.Pointer[map[string]*Certificate] // by domain

	once  sync.Once
	own   *tls.Certificate // for names that nobody has a certificate for
	error error
}

var _ l7.CertificateSource = (*certificates)(nil)

func (c *certificates) replace(p *Port) {
	table := make(map[string]*Certificate, len(p.hosts))
	for domain, h := range p.hosts {
		if len(h.Certificates) > 0 {
			table[domain] = h.Certificates[0]
		}
	}
	c.table.Store(&table)
}

// Certificate implements l7.CertificateSource: that of the name, of the wildcard
// above it, of the domain "*", and else one of the gateway's own.
func (c *certificates) Certificate(name string) (*tls.Certificate, error) {
	table := *c.table.Load()
	name = strings.ToLower(strings.TrimSuffix(name, "."))
	if found := table[name]; found != nil {
		return &found.Certificate, nil
	}
	for rest := name; ; {
		_, parent, ok := strings.Cut(rest, ".")
		if !ok {
			break
		}
		if found := table["*."+parent]; found != nil {
			return &found.Certificate, nil
		}
		rest = parent
	}
	if found := table["*"]; found != nil {
		return &found.Certificate, nil
	}
	c.once.Do(func() { c.own, c.error = selfSigned() })
	return c.own, c.error
}

// selfSigned is what clients get who ask for an unknown name. It is made when the
// first of them comes.
func selfSigned() (*tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return nil, err
	}
	now := time.Now()
	template := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: "Periplus gateway default certificate", Organization: []string{"Periplus"}},
		DNSNames: []string{"gateway.invalid"}, NotBefore: now.Add(-time.Hour), NotAfter: now.AddDate(1, 0, 0),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, err
	}
	return &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, nil
}

// ErrPortTaken says that another program listens at a port.
var ErrPortTaken = errors.New("is in use by another program")
