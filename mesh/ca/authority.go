package ca

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"sync/atomic"
	"time"

	"github.com/periplus/periplus/mesh"
)

const (
	// WorkloadLife is how long a workload's certificate is valid.
	WorkloadLife = 24 * time.Hour
	rootLife     = 10 * 365 * 24 * time.Hour
	serverLife   = 7 * 24 * time.Hour
	// backdate allows for clocks that run behind.
	backdate = 2 * time.Minute
)

// ErrRequest is wrapped when a certificate request cannot be signed.
var ErrRequest = errors.New("certificate request is invalid")

// An Authority signs certificates with a self-signed root.
type Authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	pem  []byte

	server atomic.Pointer[tls.Certificate] // of the control plane itself
}

// New makes an authority.
func New() (*Authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("make the mesh's authority: %w", err)
	}
	serial, err := newSerial()
	if err != nil {
		return nil, err
	}
	now := time.Now()
	template := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{Organization: []string{mesh.TrustDomain}},
		NotBefore: now.Add(-backdate), NotAfter: now.Add(rootLife),
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageCRLSign,
		BasicConstraintsValid: true, IsCA: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return nil, fmt.Errorf("make the mesh's authority: %w", err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, err
	}
	return &Authority{cert: cert, key: key, pem: encode(der)}, nil
}

// Load reads an authority from its certificate and its key, in PEM.
func Load(certPEM, keyPEM []byte) (*Authority, error) {
	pair, err := tls.X509KeyPair(certPEM, keyPEM)
	if err != nil {
		return nil, fmt.Errorf("the mesh's authority: %w", err)
	}
	key, ok := pair.PrivateKey.(*ecdsa.PrivateKey)
	switch {
	case !ok:
		return nil, fmt.Errorf("the mesh's authority: its key is %T, must be ECDSA", pair.PrivateKey)
	case !pair.Leaf.IsCA:
		return nil, errors.New("the mesh's authority: its certificate is not one of an authority")
	}
	return &Authority{cert: pair.Leaf, key: key, pem: certPEM}, nil
}

// Root is the root certificate in PEM.
func (a *Authority) Root() []byte { return a.pem }

// Pool has the root certificate.
func (a *Authority) Pool() *x509.CertPool {
	p := x509.NewCertPool()
	p.AddCert(a.cert)
	return p
}

func (a *Authority) keyPEM() ([]byte, error) {
	der, err := x509.MarshalECPrivateKey(a.key)
	if err != nil {
		return nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der}), nil
}

// Sign certifies the public key of a request for an identity, and returns the
// chain in PEM, the leaf first, the root last. A life of zero, or one longer than
// WorkloadLife, is WorkloadLife.
func (a *Authority) Sign(csrPEM []byte, id mesh.Identity, life time.Duration) ([]string, error) {
	block, _ := pem.Decode(csrPEM)
	if block == nil {
		return nil, fmt.Errorf("%w: not in PEM", ErrRequest)
	}
	csr, err := x509.ParseCertificateRequest(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrRequest, err)
	}
	if err := csr.CheckSignature(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrRequest, err)
	}
	if err := strong(csr.PublicKey); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrRequest, err)
	}
	if life <= 0 || life > WorkloadLife {
		life = WorkloadLife
	}
	leaf, err := a.issue(&x509.Certificate{URIs: urls(id)}, csr.PublicKey, life)
	if err != nil {
		return nil, err
	}
	return []string{string(encode(leaf)), string(a.pem)}, nil
}

// ServerCertificate is the control plane's own, renewed when half of its life is over.
func (a *Authority) ServerCertificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	if c := a.server.Load(); c != nil && time.Now().Before(c.Leaf.NotBefore.Add(serverLife/2)) {
		return c, nil
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	name := mesh.ControlPlane + "." + mesh.RootNamespace
	der, err := a.issue(&x509.Certificate{
		DNSNames: []string{name + ".svc", name + ".svc.cluster.local", name, "localhost"}, IPAddresses: loopback,
		URIs: urls(mesh.Identity{TrustDomain: mesh.TrustDomain, Namespace: mesh.RootNamespace, ServiceAccount: mesh.ControlPlane}),
	}, &key.PublicKey, serverLife)
	if err != nil {
		return nil, err
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, err
	}
	c := &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}
	a.server.Store(c)
	return c, nil
}

func (a *Authority) issue(template *x509.Certificate, public any, life time.Duration) ([]byte, error) {
	serial, err := newSerial()
	if err != nil {
		return nil, err
	}
	now := time.Now()
	template.SerialNumber = serial
	template.NotBefore, template.NotAfter = now.Add(-backdate), now.Add(life)
	if template.NotAfter.After(a.cert.NotAfter) {
		template.NotAfter = a.cert.NotAfter
	}
	template.KeyUsage = x509.KeyUsageDigitalSignature | x509.KeyUsageKeyEncipherment
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}
	template.BasicConstraintsValid = true
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, public, a.key)
	if err != nil {
		return nil, fmt.Errorf("sign a certificate: %w", err)
	}
	return der, nil
}

// strong refuses keys that are too short to be safe.
func strong(key any) error {
	switch k := key.(type) {
	case *rsa.PublicKey:
		if k.N.BitLen() < 2048 {
			return fmt.Errorf("RSA key of %d bits: must have 2048 or more", k.N.BitLen())
		}
	case *ecdsa.PublicKey:
		if k.Curve.Params().BitSize < 256 {
			return fmt.Errorf("ECDSA key of %d bits: must have 256 or more", k.Curve.Params().BitSize)
		}
	}
	return nil
}

func newSerial() (*big.Int, error) {
	n, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return nil, fmt.Errorf("make a serial number: %w", err)
	}
	return n, nil
}

func encode(der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}
