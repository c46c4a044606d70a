package bootstrap

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/periplus/periplus/base"
	"github.com/periplus/periplus/base/pki"
)

// The files of a membership.
const (
	caFile      = "ca.crt"
	clientFile  = "kubelet-client"
	serverFile  = "kubelet-server"
	clusterFile = "cluster.json"
)

// ErrNoMember is returned by Open when the directory has no membership.
var ErrNoMember = errors.New("this machine has not joined a cluster")

// errNoServing is what clients of the kubelet see before it has a certificate.
var errNoServing = errors.New("the kubelet has no serving certificate yet")

// retryAfter is the first pause after a failed renewal; it doubles up to retryMax.
const (
	retryAfter = time.Second
	retryMax   = 5 * time.Minute
)

// An Identity is a node's certificates in a directory.
type Identity struct {
	dir  string
	node string
	ca   []byte
	pool *x509.CertPool

	client, server atomic.Pointer[tls.Certificate]
}

// Save writes what a join gave. The client certificate comes last: with it the
// membership is complete.
func Save(dir string, m *Membership) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("membership: %w", err)
	}
	return errors.Join(
		pki.WriteFile(filepath.Join(dir, caFile), m.CA, 0o644),
		pki.WriteFile(filepath.Join(dir, clusterFile), m.Cluster, 0o644),
		writePair(filepath.Join(dir, clientFile), m.Client),
	)
}

// writePair writes key and certificate as one file: a crash leaves the old pair
// or the new one.
func writePair(path string, p Pair) error {
	return pki.WriteFile(path+".pem", append(append([]byte{}, p.Cert...), p.Key...), 0o600)
}

func readPair(path string) (*tls.Certificate, error) {
	data, err := os.ReadFile(path + ".pem")
	if err != nil {
		return nil, err
	}
	return Pair{data, data}.parse()
}

// Open reads a membership and how its cluster is set up.
func Open(dir, node string) (*Identity, json.RawMessage, error) {
	client, err := readPair(filepath.Join(dir, clientFile))
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil, ErrNoMember
	}
	if err != nil {
		return nil, nil, fmt.Errorf("certificate of this node: %w", err)
	}
	ca, err := os.ReadFile(filepath.Join(dir, caFile))
	if err != nil {
		return nil, nil, fmt.Errorf("membership: %w", err)
	}
	cluster, err := os.ReadFile(filepath.Join(dir, clusterFile))
	if err != nil {
		return nil, nil, fmt.Errorf("membership: %w", err)
	}
	if have := client.Leaf.Subject.CommonName; have != "system:node:"+node {
		return nil, nil, fmt.Errorf("this machine joined as %s: start it with that --node-name, or remove the state with \"peri down --purge\" and join again", have[len("system:node:"):])
	}
	i := &Identity{dir: dir, node: node, ca: ca, pool: x509.NewCertPool()}
	if !i.pool.AppendCertsFromPEM(ca) {
		return nil, nil, fmt.Errorf("membership: %s holds no certificate", caFile)
	}
	i.client.Store(client)
	if server, err := readPair(filepath.Join(dir, serverFile)); err == nil {
		i.server.Store(server)
	}
	return i, cluster, nil
}

// Expired says whether the client certificate is of no use any more.
func (i *Identity) Expired() bool { return time.Now().After(i.client.Load().Leaf.NotAfter) }

// CA is the cluster's authority in PEM, Pool the same as a pool.
func (i *Identity) CA() []byte           { return i.ca }
func (i *Identity) Pool() *x509.CertPool { return i.pool }

// SaveCluster keeps how the cluster is set up for starts without a server.
func (i *Identity) SaveCluster(data json.RawMessage) error {
	return pki.WriteFile(filepath.Join(i.dir, clusterFile), data, 0o644)
}

// Client is for tls.Config.GetClientCertificate.
func (i *Identity) Client(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
	return i.client.Load(), nil
}

// Renewed is Client for a process beside the one that renews the certificate: it looks
// into the directory.
func (i *Identity) Renewed(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
	if c, err := readPair(filepath.Join(i.dir, clientFile)); err == nil {
		i.client.Store(c)
	}
	return i.client.Load(), nil
}

// Server is for tls.Config.GetCertificate.
func (i *Identity) Server(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	if c := i.server.Load(); c != nil {
		return c, nil
	}
	return nil, errNoServing
}

// Renewal says how certificates are kept fresh.
type Renewal struct {
	Client kubernetes.Interface // speaks as this node
	IPs    []net.IP             // of the kubelet's server
	Life   time.Duration        // 0: the server's default
	// OnClient is called when there is a new client certificate.
	OnClient func()
	Log      *slog.Logger
}

// Run gets the serving certificate and renews both, until ctx ends.
func (i *Identity) Run(ctx context.Context, r Renewal) error {
	serving := wanted{
		signer: certificatesv1.KubeletServingSignerName, usage: certificatesv1.UsageServerAuth,
		node: i.node, names: []string{i.node}, ips: r.IPs, life: r.Life,
	}
	return base.RunAll(ctx,
		base.Component{Name: "client certificate", Run: func(ctx context.Context) error {
			return i.keep(ctx, r, &i.client, clientFile, clientOf(i.node, r.Life), r.OnClient)
		}},
		base.Component{Name: "serving certificate", Run: func(ctx context.Context) error {
			return i.keep(ctx, r, &i.server, serverFile, serving, func() {})
		}},
	)
}

func (i *Identity) keep(ctx context.Context, r Renewal, current *atomic.Pointer[tls.Certificate], file string, w wanted, renewed func()) error {
	pause := retryAfter
	for {
		if wait := i.due(current.Load(), w); wait > 0 {
			timer := time.NewTimer(wait)
			select {
			case <-ctx.Done():
				timer.Stop()
				return nil
			case <-timer.C:
			}
			continue // the clock may have been set back
		}
		pair, err := obtain(ctx, r.Client, w)
		var cert *tls.Certificate
		if err == nil {
			cert, err = pair.parse()
		}
		if err == nil {
			err = writePair(filepath.Join(i.dir, file), pair)
		}
		if err == nil {
			current.Store(cert)
			renewed()
			pause = retryAfter
			r.Log.Info("node certificate issued", base.KeyName, file, "until", cert.Leaf.NotAfter)
			continue
		}
		if ctx.Err() != nil {
			return nil
		}
		r.Log.Warn("a certificate of this node cannot be renewed; will try again", base.KeyName, file, base.KeyError, err, "after", pause)
		timer := time.NewTimer(pause)
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil
		case <-timer.C:
		}
		pause = min(2*pause, retryMax)
	}
}

// due is how long a certificate is good for: until two thirds of its life, or not
// at all when it is not as wanted.
func (i *Identity) due(c *tls.Certificate, w wanted) time.Duration {
	if c == nil {
		return 0
	}
	x := c.Leaf
	for _, ip := range w.ips {
		if x.VerifyHostname(ip.String()) != nil {
			return 0
		}
	}
	if _, err := x.Verify(x509.VerifyOptions{Roots: i.pool, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny}}); err != nil {
		return 0
	}
	at := x.NotBefore.Add(x.NotAfter.Sub(x.NotBefore) * 2 / 3)
	return time.Until(at)
}
