package apiserver_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	restclient "k8s.io/client-go/rest"

	"github.com/periplus/periplus/apiserver"
	"github.com/periplus/periplus/base/pki"
)

// pipes is a listener whose connections are in memory, so that a test's clock holds
// for them.
type pipes struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func newPipes() *pipes { return &pipes{conns: make(chan net.Conn), closed: make(chan struct{})} }

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error {
	p.once.Do(func() { close(p.closed) })
	return nil
}

func (p *pipes) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)} }

// dial connects as an administrator, with HTTP/1.1.
func (p *pipes) dial(t *testing.T, config *tls.Config) *tls.Conn {
	t.Helper()
	near, far := net.Pipe()
	p.conns <- far
	c := tls.Client(near, config)
	if err := c.HandshakeContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	return c
}

// overPipes runs a server whose clients connect through memory, under a clock that
// moves when all is idle.
func overPipes(t *testing.T, f func(t *testing.T, p *pipes, config *tls.Config, c *kubernetes.Clientset)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		ca, err := pki.OpenAuthority(t.TempDir(), "ca")
		if err != nil {
			t.Fatal(err)
		}
		serving, err := pki.OpenLeaf(ca, t.TempDir()+"/serving", pki.Request{CommonName: "apiserver", IPs: []net.IP{net.IPv4(127, 0, 0, 1)}, Server: true})
		if err != nil {
			t.Fatal(err)
		}
		p := newPipes()
		_, c := startWith(t, func(c *apiserver.Config) { c.Certificate, c.ClientCAs = serving.Server, ca.Pool() }, p)
		config, err := restclient.TLSConfigFor(as(t, ca, "127.0.0.1", "root", "system:masters"))
		if err != nil {
			t.Fatal(err)
		}
		config.ServerName, config.NextProtos = "127.0.0.1", []string{"http/1.1"}
		f(t, p, config, c)
	})
}

// large makes a ConfigMap of so many bytes.
func large(t *testing.T, c *kubernetes.Clientset, size int) {
	t.Helper()
	m := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "large"}, Data: map[string]string{"k": strings.Repeat("v", size)}}
	if _, err := c.CoreV1().ConfigMaps("default").Create(t.Context(), m, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// TestStuckWatcher: who does not read what a watch sends loses the connection, and
// nobody else notices.
func TestStuckWatcher(t *testing.T) {
	t.Parallel()
	overPipes(t, func(t *testing.T, p *pipes, config *tls.Config, c *kubernetes.Clientset) {
		conn := p.dial(t, config)
		defer conn.Close()
		if _, err := io.WriteString(conn, "GET /api/v1/namespaces/default/configmaps?watch=1 HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		answer, err := http.ReadResponse(bufio.NewReaderSize(conn, 16), nil)
		if err != nil || answer.StatusCode != http.StatusOK {
			t.Fatalf("%v, %v", answer, err)
		}
		defer answer.Body.Close()
		// Longer than any request may take: a watch is none.
		<-time.After(10 * time.Minute)
		begin := time.Now()
		large(t, c, 100<<10)
		if d := time.Since(begin); d != 0 {
			t.Errorf("the writer waited for the watcher: %s", d)
		}
		<-time.After(31 * time.Second)
		synctest.Wait()
		if _, err := io.Copy(io.Discard, conn); err != nil && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, io.ErrClosedPipe) {
			t.Logf("the connection ended with: %v", err)
		}
		if _, err := conn.Write([]byte("x")); err == nil {
			t.Error("the connection is still there")
		}
	})
}

// TestSlowClients: headers and bodies must arrive in time, answers must be read in
// time, and a connection on which nothing happens ends.
func TestSlowClients(t *testing.T) {
	t.Parallel()
	post := "POST /api/v1/namespaces/default/configmaps HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n"
	for _, c := range []struct {
		name, say string
		read      bool
		want      time.Duration // when the server gives up, at the latest
		text      string
	}{
		{"says nothing", "", true, 91 * time.Second, ""},
		{"half a header", "GET /api/v1/pods HT", true, 33 * time.Second, ""},
		{"half a body", post + `{"kind":"ConfigMap"`, true, 71 * time.Second, "504 Gateway Timeout"},
		{"does not read", "GET /api/v1/namespaces/default/configmaps HTTP/1.1\r\nHost: x\r\n\r\n", false, 91 * time.Second, ""},
		{"idle after a request", "GET /version HTTP/1.1\r\nHost: x\r\n\r\n", true, 91 * time.Second, "200 OK"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			overPipes(t, func(t *testing.T, p *pipes, config *tls.Config, client *kubernetes.Clientset) {
				large(t, client, 500<<10)
				conn := p.dial(t, config)
				defer conn.Close()
				begin := time.Now()
				if c.say != "" {
					if _, err := io.WriteString(conn, c.say); err != nil {
						t.Fatal(err)
					}
				}
				if !c.read {
					<-time.After(c.want)
					synctest.Wait()
				}
				got, err := io.ReadAll(conn)
				if d := time.Since(begin); d > c.want {
					t.Errorf("the server gave up after %s, want %s at the latest", d, c.want)
				}
				if !strings.Contains(string(got), c.text) || !c.read && len(got) > 100<<10 {
					t.Errorf("%d bytes, %v: %.300s; want %s", len(got), err, got, c.text)
				}
			})
		})
	}
}

// TestIdleConnections: a connection on which nothing happens costs a goroutine or two
// and ends by itself.
func TestIdleConnections(t *testing.T) {
	t.Parallel()
	overPipes(t, func(t *testing.T, p *pipes, config *tls.Config, c *kubernetes.Clientset) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		ended := make(chan error, 200)
		for range cap(ended) {
			conn := p.dial(t, config)
			go func() {
				defer conn.Close()
				_, err := io.Copy(io.Discard, conn)
				ended <- err
			}()
		}
		if _, err := c.CoreV1().Nodes().List(ctx, metav1.ListOptions{}); err != nil {
			t.Errorf("beside %d connections: %v", cap(ended), err)
		}
		begin := time.Now()
		for range cap(ended) {
			if err := <-ended; err != nil {
				t.Log(err) // a reset ends it as well
			}
		}
		if d := time.Since(begin); d > 2*time.Minute {
			t.Errorf("idle connections ended after %s", d)
		}
	})
}
