package apitest

import (
	"cmp"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"path/filepath"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/periplus/periplus/apiserver"
	"github.com/periplus/periplus/base"
	"github.com/periplus/periplus/base/pki"
	"github.com/periplus/periplus/store"
	"github.com/periplus/periplus/store/etcd"
	"github.com/periplus/periplus/store/mem"
)

// serviceCIDR is where cluster IPs come from, as in envtest.
const serviceCIDR = "10.0.0.0/24"

// A server is one that runs.
type server struct {
	ctx    context.Context // ends when the server does
	cancel context.CancelFunc
	ended  chan struct{} // closed when everything has ended, with err
	err    error

	api     *apiserver.Server
	ca      *pki.Authority
	address string
	store   store.Store
	dir     string // of etcd; "" in memory
	log     *slog.Logger
}

// start returns a server that is ready.
func start(e *Environment) (*server, error) {
	s := &server{ended: make(chan struct{}), log: e.Log}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	listener, err := s.prepare(e)
	if err != nil {
		s.cancel()
		return nil, errors.Join(err, s.close())
	}
	ready := make(chan struct{})
	go func() {
		defer close(s.ended)
		defer s.cancel()
		s.err = errors.Join(base.RunAll(s.ctx,
			base.Component{Name: "apiserver", Run: func(ctx context.Context) error { return s.api.Run(ctx, listener) }},
			base.Component{Name: "components", Run: func(ctx context.Context) error { return s.components(ctx, e, ready) }},
		), s.close())
	}()
	select {
	case <-ready:
		return s, nil
	case <-s.ended:
		return nil, fmt.Errorf("apitest: the API server ended before it was ready: %w", s.err)
	}
}

// prepare opens the store and makes certificates and a listener.
func (s *server) prepare(e *Environment) (net.Listener, error) {
	var err error
	if s.ca, err = pki.New("apitest"); err != nil {
		return nil, err
	}
	accounts, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	services := netip.MustParsePrefix(serviceCIDR)
	names := pki.Request{
		CommonName: "kube-apiserver", Server: true, DNSNames: []string{"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc"},
		IPs: []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback, services.Addr().Next().AsSlice()},
	}
	if at, err := netip.ParseAddrPort(e.Address); err == nil {
		names.IPs = append(names.IPs, at.Addr().AsSlice())
	}
	certificate, key, err := s.ca.Pair(names)
	if err != nil {
		return nil, err
	}
	serving, err := tls.X509KeyPair(certificate, key)
	if err != nil {
		return nil, err
	}
	if s.store, err = s.open(e.Etcd); err != nil {
		return nil, err
	}
	listener, err := new(net.ListenConfig).Listen(s.ctx, "tcp", cmp.Or(e.Address, "127.0.0.1:0"))
	if err != nil {
		return nil, fmt.Errorf("apitest: %w", err)
	}
	s.address = reachable(listener.Addr())
	front, err := newFrontProxy()
	if err != nil {
		return nil, errors.Join(err, listener.Close())
	}
	config := apiserver.Config{
		Trust: front.trust(s.ca.PEM), ProxyClient: front.client,
		Store: s.store, Version: Version, Advertise: advertised(s.address), ServiceCIDRs: []netip.Prefix{services},
		Certificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return &serving, nil }, ClientCAs: s.ca.Pool(),
		KubeletTLS:        &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: s.ca.Pool()},
		ServiceAccountKey: accounts, Log: s.log,
	}
	if !e.ServiceAccounts {
		config.DisableAdmission = []string{"ServiceAccount"}
	}
	if s.api, err = apiserver.New(config); err != nil {
		return nil, errors.Join(err, listener.Close())
	}
	return listener, nil
}

// reachable is how clients on this machine reach a listener.
func reachable(a net.Addr) string {
	at := a.(*net.TCPAddr).AddrPort()
	if at.Addr().IsUnspecified() {
		at = netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), at.Port())
	}
	return netip.AddrPortFrom(at.Addr().Unmap(), at.Port()).String()
}

// advertised is the endpoint of default/kubernetes: none on the loopback interface,
// where no pod could reach it.
func advertised(address string) netip.AddrPort {
	at := netip.MustParseAddrPort(address)
	if at.Addr().IsLoopback() {
		return netip.AddrPortFrom(netip.Addr{}, at.Port())
	}
	return at
}

// open opens the store.
func (s *server) open(onDisk bool) (store.Store, error) {
	if !onDisk {
		return mem.New(), nil
	}
	var err error
	if s.dir, err = os.MkdirTemp("", "apitest-"); err != nil {
		return nil, err
	}
	return etcd.Start(s.ctx, etcd.Config{Dir: filepath.Join(s.dir, "etcd"), Socket: filepath.Join(s.dir, "sock"), Log: s.log})
}

func (s *server) close() error {
	var err error
	if s.store != nil {
		err = s.store.Close()
	}
	if s.dir != "" {
		err = errors.Join(err, os.RemoveAll(s.dir))
	}
	return err
}

// stop ends a server and waits for it; nil has ended already.
func (s *server) stop() error {
	if s == nil {
		return nil
	}
	s.cancel()
	<-s.ended
	return s.err
}

// admin is an administrator's configuration, and the same as a file.
func (s *server) admin() (*rest.Config, []byte, error) {
	config, err := s.user(User{Name: "admin", Groups: []string{"system:masters"}}, nil)
	if err != nil {
		return nil, nil, err
	}
	// A test asks as fast as it can.
	config.QPS, config.Burst = 1000, 2000
	file, err := kubeconfig(config)
	return config, file, err
}

// user is the configuration of somebody with a certificate.
func (s *server) user(u User, like *rest.Config) (*rest.Config, error) {
	certificate, key, err := s.ca.Pair(pki.Request{CommonName: u.Name, Organizations: u.Groups, Client: true})
	if err != nil {
		return nil, err
	}
	config := &rest.Config{}
	if like != nil {
		config = rest.AnonymousClientConfig(like)
		config.QPS, config.Burst = like.QPS, like.Burst
	}
	config.Host = "https://" + s.address
	config.TLSClientConfig = rest.TLSClientConfig{CAData: s.ca.PEM, CertData: certificate, KeyData: key}
	return config, nil
}

// kubeconfig is a configuration as a file's content.
func kubeconfig(c *rest.Config) ([]byte, error) {
	const name = "apitest"
	return clientcmd.Write(clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{name: {Server: c.Host, CertificateAuthorityData: c.CAData}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{name: {ClientCertificateData: c.CertData, ClientKeyData: c.KeyData}},
		Contexts:       map[string]*clientcmdapi.Context{name: {Cluster: name, AuthInfo: name, Namespace: "default"}},
		CurrentContext: name,
	})
}
