package engine_test

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/http2"

	"github.com/periplus/periplus/l7"
	"github.com/periplus/periplus/l7/engine"
)

// authority signs certificates for tests.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(t testing.TB) *authority {
	t.Helper()
	key, _ := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"}, NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	cert, _ := x509.ParseCertificate(der)
	return &authority{cert, key}
}

// issue makes a certificate for DNS names and spiffe:// URIs.
func (a *authority) issue(t testing.TB, names ...string) tls.Certificate {
	t.Helper()
	key, _ := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), NotAfter: time.Now().Add(time.Hour),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	for _, n := range names {
		if u, err := url.Parse(n); err == nil && u.Scheme != "" {
			template.URIs = append(template.URIs, u)
		} else {
			template.DNSNames = append(template.DNSNames, n)
		}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, key.Public(), a.key)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

func (a *authority) pool() *x509.CertPool {
	p := x509.NewCertPool()
	p.AddCert(a.cert)
	return p
}

// rotating is a certificate that can be replaced.
type rotating struct {
	atomic.Pointer[tls.Certificate]
}

func (r *rotating) Certificate(string) (*tls.Certificate, error) { return r.Load(), nil }

func direct(body string) []*l7.Route {
	return []*l7.Route{{Direct: &l7.Reply{Status: 200, Body: body}}}
}

func TestTLS(t *testing.T) {
	t.Parallel()
	ca := newAuthority(t)
	web := &rotating{}
	first := ca.issue(t, "a.example")
	web.Store(&first)
	other := ca.issue(t, "*.b.example")
	chain := func(name string, certificates l7.CertificateSource, routes string) *l7.FilterChain {
		return &l7.FilterChain{Name: name, Match: l7.ChainMatch{ServerNames: []string{name}},
			TLS: &l7.DownstreamTLS{Certificates: certificates}, HTTP: &l7.HTTPConnectionManager{RouteConfig: routes}}
	}
	s := &l7.Snapshot{
		Listeners: []*l7.Listener{{Name: "tls", Address: "127.0.0.1:0", Chains: []*l7.FilterChain{
			chain("a.example", web, "a"), chain("*.b.example", &l7.StaticCertificate{Pair: other}, "b"),
		}}},
		Routes: map[string]*l7.RouteConfiguration{
			"a": {VirtualHosts: []*l7.VirtualHost{{Domains: []string{"*"}, Routes: direct("a")}}},
			"b": {VirtualHosts: []*l7.VirtualHost{{Domains: []string{"*"}, Routes: direct("b")}}},
		},
	}
	e := start(t, s)
	address := e.Addr("tls")
	dial := func(name string, protocols ...string) (*tls.Conn, error) {
		return tls.Dial("tcp", address, &tls.Config{ServerName: name, RootCAs: ca.pool(), NextProtos: protocols})
	}
	for _, test := range []struct {
		name, body string
		protocols  []string
		http2      bool
	}{{"a.example", "a", []string{"http/1.1"}, false}, {"x.b.example", "b", []string{"h2", "http/1.1"}, true}, {"a.example", "a", nil, false}} {
		tr := &http.Transport{DialTLSContext: func(context.Context, string, string) (net.Conn, error) { return dial(test.name, test.protocols...) }, ForceAttemptHTTP2: test.http2}
		if test.http2 {
			if err := http2.ConfigureTransport(tr); err != nil {
				t.Fatal(err)
			}
		}
		r, err := (&http.Client{Transport: tr, Timeout: testTimeout}).Get("https://" + test.name)
		if err != nil {
			t.Errorf("%s %v: %v", test.name, test.protocols, err)
			continue
		}
		b, _ := io.ReadAll(r.Body)
		_ = r.Body.Close()
		tr.CloseIdleConnections()
		if string(b) != test.body || (r.ProtoMajor == 2) != test.http2 {
			t.Errorf("%s %v: %q over %s", test.name, test.protocols, b, r.Proto)
		}
	}
	if c, err := dial("unknown.example"); err == nil {
		_ = c.Close()
		t.Error("a server name without a chain is served")
	}
	c, err := dial("a.example")
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	second := ca.issue(t, "a.example")
	web.Store(&second)
	after, err := dial("a.example")
	if err != nil {
		t.Fatal(err)
	}
	defer after.Close()
	if after.ConnectionState().PeerCertificates[0].SerialNumber.Cmp(c.ConnectionState().PeerCertificates[0].SerialNumber) == 0 {
		t.Error("the certificate was not replaced")
	}
	fmt.Fprint(c, "GET / HTTP/1.1\r\nHost: a\r\n\r\n")
	if r, err := http.ReadResponse(bufio.NewReader(c), nil); err != nil || r.StatusCode != 200 {
		t.Errorf("a connection from before the replacement: %v", err)
	}
}

// TestMutualTLS has two engines, as two sidecars: both sides have SPIFFE identities.
func TestMutualTLS(t *testing.T) {
	t.Parallel()
	ca := newAuthority(t)
	const clientID, serverID = "spiffe://cluster.local/ns/a/sa/client", "spiffe://cluster.local/ns/b/sa/server"
	roots := &l7.StaticRoots{Pool: ca.pool()}
	app := backend(t, func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, r.Header.Get("X-Peer")) })
	in := snapshot(nil, app)
	in.Listeners[0].Chains[0].TLS = &l7.DownstreamTLS{Certificates: &l7.StaticCertificate{Pair: ca.issue(t, serverID)}, ClientRoots: roots, RequireClient: true}
	in.Listeners[0].Chains[0].HTTP.Filters = []l7.Filter{l7.FilterFunc(func(x *l7.Exchange) *l7.Reply {
		x.Request.Header.Set("X-Peer", x.Connection.Peer.Principal())
		return nil
	})}
	server := start(t, in)
	for _, protocol := range []l7.Protocol{l7.ProtocolHTTP1, l7.ProtocolHTTP2, l7.ProtocolALPN} {
		out := snapshot(nil, server.Addr("web"))
		tlsTo := &l7.UpstreamTLS{Certificates: &l7.StaticCertificate{Pair: ca.issue(t, clientID)}, Roots: roots, SubjectAltNames: []string{serverID}}
		out.Clusters["app"] = &l7.Cluster{TLS: tlsTo, Protocol: protocol}
		e := start(t, out)
		for range 3 {
			status, body, _ := get(t, client(t), "http://"+e.Addr("web"))
			if status != 200 || body != "cluster.local/ns/a/sa/client" {
				t.Errorf("protocol %d: %d %q", protocol, status, body)
			}
		}
		wrong := *tlsTo
		wrong.SubjectAltNames = []string{"spiffe://cluster.local/ns/b/sa/other"}
		s := snapshot(nil, server.Addr("web"))
		s.Clusters["app"] = &l7.Cluster{TLS: &wrong, Protocol: protocol}
		if err := e.Apply(s); err != nil {
			t.Fatal(err)
		}
		if status, body, _ := get(t, client(t), "http://"+e.Addr("web")); status != 503 {
			t.Errorf("protocol %d: an endpoint with another identity answers: %d %q", protocol, status, body)
		}
	}
}

// TestHTTP2 goes through all pairs of versions, with trailers as gRPC has them.
func TestHTTP2(t *testing.T) {
	t.Parallel()
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		w.Header().Set("Trailer", "Grpc-Status")
		w.Header().Set("Content-Type", "application/grpc")
		_, _ = fmt.Fprintf(w, "%d %d %s %s", r.ProtoMajor, len(b), r.Header.Get("Te"), r.URL.Path)
		w.Header().Set("Grpc-Status", "0")
	})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var p http.Protocols
	p.SetHTTP1(true)
	p.SetUnencryptedHTTP2(true)
	s := &http.Server{Handler: h, Protocols: &p}
	go func() { _ = s.Serve(l) }()
	t.Cleanup(func() { _ = s.Close() })
	for _, up := range []struct {
		protocol l7.Protocol
		version  [2]int // by the client's version
	}{{l7.ProtocolHTTP1, [2]int{1, 1}}, {l7.ProtocolHTTP2, [2]int{2, 2}}, {l7.ProtocolDownstream, [2]int{1, 2}}} {
		config := snapshot(nil, l.Addr().String())
		config.Clusters["app"] = &l7.Cluster{Protocol: up.protocol}
		e := start(t, config)
		for i, two := range []bool{false, true} {
			var cp http.Protocols
			cp.SetHTTP1(!two)
			cp.SetUnencryptedHTTP2(two)
			tr := &http.Transport{Protocols: &cp}
			c := &http.Client{Transport: tr, Timeout: testTimeout}
			for _, size := range []int{0, 10, 1 << 20} {
				q, _ := http.NewRequest("POST", "http://"+e.Addr("web")+"/pkg.Service/Method", strings.NewReader(strings.Repeat("x", size)))
				q.Header.Set("Te", "trailers")
				r, err := c.Do(q)
				if err != nil {
					t.Fatalf("upstream %d, client %d: %v", up.protocol, i+1, err)
				}
				b, err := io.ReadAll(r.Body)
				_ = r.Body.Close()
				want := fmt.Sprintf("%d %d trailers /pkg.Service/Method", up.version[i], size)
				if err != nil || string(b) != want || r.Trailer.Get("Grpc-Status") != "0" {
					t.Errorf("upstream %d, client %d: %q (%v) trailer %v, want %q", up.protocol, i+1, b, err, r.Trailer, want)
				}
			}
			tr.CloseIdleConnections()
		}
	}
}

func TestTCP(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				n, _ := io.Copy(c, c) // echo until the client's end, then a word
				_, _ = fmt.Fprintf(c, "%d", n)
			}()
		}
	}()
	s := snapshot(nil, l.Addr().String())
	closed := make(chan l7.Connection, 10)
	s.Listeners[0].Chains[0].HTTP = nil
	s.Listeners[0].Chains[0].TCP = &l7.TCPProxy{Cluster: "app", Observers: []l7.ConnectionObserver{observer(closed)}}
	e := start(t, s)
	for _, size := range []int{0, 100, 1 << 20} {
		c, err := net.Dial("tcp", e.Addr("web"))
		if err != nil {
			t.Fatal(err)
		}
		_ = c.SetDeadline(time.Now().Add(testTimeout))
		go func() {
			_, _ = io.CopyN(c, zeros{}, int64(size))
			_ = c.(*net.TCPConn).CloseWrite()
		}()
		b, err := io.ReadAll(c)
		_ = c.Close()
		word := fmt.Sprint(size)
		if err != nil || len(b) != size+len(word) || string(b[size:]) != word {
			t.Errorf("%d bytes: got %d, %v", size, len(b), err)
		}
		if got := <-closed; got.BytesReceived != int64(size) || got.BytesSent != int64(len(b)) || got.Endpoint == nil {
			t.Errorf("observed %d bytes received, %d sent, endpoint %v", got.BytesReceived, got.BytesSent, got.Endpoint)
		}
	}
}

type observer chan l7.Connection

func (observer) Opened(*l7.Connection)     {}
func (o observer) Closed(c *l7.Connection) { o <- *c }

// TestPassthrough sends TLS on by its server name without ending it.
func TestPassthrough(t *testing.T) {
	t.Parallel()
	ca := newAuthority(t)
	inner := &l7.Snapshot{
		Listeners: []*l7.Listener{{Name: "tls", Address: "127.0.0.1:0", Chains: []*l7.FilterChain{{
			TLS: &l7.DownstreamTLS{Certificates: &l7.StaticCertificate{Pair: ca.issue(t, "a.example")}}, HTTP: &l7.HTTPConnectionManager{RouteConfig: "a"}}}}},
		Routes: map[string]*l7.RouteConfiguration{"a": {VirtualHosts: []*l7.VirtualHost{{Domains: []string{"*"}, Routes: direct("inner")}}}},
	}
	behind := start(t, inner)
	s := snapshot(nil, behind.Addr("tls"))
	s.Listeners[0].Chains = []*l7.FilterChain{{Match: l7.ChainMatch{ServerNames: []string{"a.example"}, Transport: "tls"}, TCP: &l7.TCPProxy{Cluster: "app"}}}
	e := start(t, s)
	tr := &http.Transport{TLSClientConfig: &tls.Config{ServerName: "a.example", RootCAs: ca.pool()}}
	t.Cleanup(tr.CloseIdleConnections)
	r, err := (&http.Client{Transport: tr, Timeout: testTimeout}).Get("https://" + e.Addr("web"))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	if b, _ := io.ReadAll(r.Body); string(b) != "inner" {
		t.Errorf("got %q", b)
	}
}

func TestDrain(t *testing.T) {
	t.Parallel()
	entered, leave := make(chan struct{}), make(chan struct{})
	app := backend(t, func(w http.ResponseWriter, _ *http.Request) {
		entered <- struct{}{}
		<-leave
		_, _ = io.WriteString(w, "done")
	})
	e := engine.New(engine.Config{DrainTimeout: testTimeout})
	if err := e.Apply(snapshot(nil, app)); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() { ended <- e.Run(ctx) }()
	idle, err := net.Dial("tcp", e.Addr("web"))
	if err != nil {
		t.Fatal(err)
	}
	defer idle.Close()
	answer := make(chan string)
	go func() {
		status, body, h := get(t, client(t), "http://"+e.Addr("web"))
		answer <- fmt.Sprint(status, body, h.Get("Connection"))
	}()
	<-entered
	cancel()
	_ = idle.SetDeadline(time.Now().Add(testTimeout))
	if _, err := idle.Read(make([]byte, 1)); err != io.EOF { //nolint:errorlint // as a connection gives it
		t.Errorf("idle connection: %v, want its end", err)
	}
	close(leave)
	if got := <-answer; !strings.HasPrefix(got, "200done") && got != "200 done close" {
		t.Errorf("request under way: %s", got)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
