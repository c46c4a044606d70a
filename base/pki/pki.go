package pki

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

const (
	// authorityLife is how long an authority is valid.
	authorityLife = 10 * 365 * 24 * time.Hour
	// LeafLife is how long an issued certificate is valid.
	LeafLife = 365 * 24 * time.Hour
	// backdate allows for clocks that run behind.
	backdate = 5 * time.Minute
)

// An Authority signs certificates.
type Authority struct {
	Cert *x509.Certificate
	Key  *ecdsa.PrivateKey
	PEM  []byte // the certificate
}

// OpenAuthority reads an authority from <dir>/<name>.crt and .key, or makes it.
func OpenAuthority(dir, name string) (*Authority, error) {
	certPath, keyPath := filepath.Join(dir, name+".crt"), filepath.Join(dir, name+".key")
	certPEM, err := os.ReadFile(certPath)
	if errors.Is(err, os.ErrNotExist) {
		return newAuthority(dir, name, certPath, keyPath)
	}
	if err != nil {
		return nil, fmt.Errorf("read authority: %w", err)
	}
	key, err := readKey(keyPath)
	if err != nil {
		return nil, err
	}
	cert, err := parseCert(certPEM)
	if err != nil {
		return nil, fmt.Errorf("authority %s: %w", certPath, err)
	}
	if !key.PublicKey.Equal(cert.PublicKey) {
		return nil, fmt.Errorf("authority %s does not belong to the key %s", certPath, keyPath)
	}
	return &Authority{cert, key, certPEM}, nil
}

// New makes an authority that is nowhere but in memory.
func New(name string) (*Authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("make a key for %s: %w", name, err)
	}
	serial, err := newSerial()
	if err != nil {
		return nil, err
	}
	now := time.Now()
	template := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: "periplus-" + name},
		NotBefore: now.Add(-backdate), NotAfter: now.Add(authorityLife),
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature | x509.KeyUsageCRLSign,
		BasicConstraintsValid: true, IsCA: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return nil, fmt.Errorf("make authority %s: %w", name, err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, err
	}
	return &Authority{cert, key, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})}, nil
}

func newAuthority(dir, name, certPath, keyPath string) (*Authority, error) {
	a, err := New(name)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("make authority %s: %w", name, err)
	}
	// The key first: a certificate without its key would be of no use after a crash.
	if err := writeKey(keyPath, a.Key); err != nil {
		return nil, err
	}
	if err := WriteFile(certPath, a.PEM, 0o644); err != nil {
		return nil, err
	}
	return a, nil
}

// KeyPEM returns the key as PEM. Only those who sign in its name may have it.
func (a *Authority) KeyPEM() []byte {
	data, err := KeyPEM(a.Key)
	if err != nil {
		return nil // a key that was read or made encodes
	}
	return data
}

// Pool returns a pool with this authority alone.
func (a *Authority) Pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(a.Cert)
	return pool
}

// A Request says what a certificate is for.
type Request struct {
	CommonName    string
	Organizations []string
	DNSNames      []string
	IPs           []net.IP
	Server        bool // may authenticate a server
	Client        bool // may authenticate a client
	Life          time.Duration
}

// Issue signs a certificate for a public key and returns it in PEM.
func (a *Authority) Issue(r Request, public any) ([]byte, error) {
	serial, err := newSerial()
	if err != nil {
		return nil, err
	}
	if r.Life == 0 {
		r.Life = LeafLife
	}
	now := time.Now()
	template := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: r.CommonName, Organization: r.Organizations},
		NotBefore: now.Add(-backdate), NotAfter: now.Add(r.Life),
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageKeyEncipherment, BasicConstraintsValid: true,
		DNSNames: r.DNSNames, IPAddresses: r.IPs,
	}
	if r.Server {
		template.ExtKeyUsage = append(template.ExtKeyUsage, x509.ExtKeyUsageServerAuth)
	}
	if r.Client {
		template.ExtKeyUsage = append(template.ExtKeyUsage, x509.ExtKeyUsageClientAuth)
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.Cert, public, a.Key)
	if err != nil {
		return nil, fmt.Errorf("issue certificate for %s: %w", r.CommonName, err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), nil
}

// Pair makes a key and issues a certificate for it, both in PEM.
func (a *Authority) Pair(r Request) (cert, key []byte, err error) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, fmt.Errorf("make a key for %s: %w", r.CommonName, err)
	}
	if cert, err = a.Issue(r, &private.PublicKey); err != nil {
		return nil, nil, err
	}
	key, err = KeyPEM(private)
	return cert, key, err
}

func newSerial() (*big.Int, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return nil, fmt.Errorf("draw a serial number: %w", err)
	}
	return serial, nil
}

func parseCert(data []byte) (*x509.Certificate, error) {
	block, _ := pem.Decode(data)
	if block == nil || block.Type != "CERTIFICATE" {
		return nil, errors.New("the file holds no PEM certificate")
	}
	return x509.ParseCertificate(block.Bytes)
}
