package server_test

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"errors"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	statsv1alpha1 "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"github.com/periplus/periplus/kubelet/server"
)

// node is a kubelet with one pod, and its runtime.
type node struct {
	pod       *corev1.Pod
	logPath   string
	streaming string // address of the streaming server
	silent    bool   // has no figures
}

func (n *node) Pods() []*corev1.Pod { return []*corev1.Pod{n.pod} }
func (n *node) Pod(namespace, name string) (*corev1.Pod, bool) {
	return n.pod, namespace == n.pod.Namespace && name == n.pod.Name
}
func (n *node) RunningPods(context.Context) ([]*corev1.Pod, error) {
	return nil, errors.New("no runtime")
}
func (n *node) CheckpointContainer(context.Context, *runtimeapi.CheckpointContainerRequest) (*runtimeapi.CheckpointContainerResponse, error) {
	return nil, status.Error(codes.Unimplemented, "method CheckpointContainer not implemented")
}
func (n *node) SandboxID(types.UID) (string, bool) { return "sandbox", true }
func (n *node) Exited(string) <-chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}
func (n *node) Summary(_ context.Context, only bool) (*statsv1alpha1.Summary, error) {
	return &statsv1alpha1.Summary{Node: statsv1alpha1.NodeStats{NodeName: map[bool]string{true: "brief", false: "full"}[only]}}, nil
}
func (n *node) ResourceStats(context.Context) (*statsv1alpha1.Summary, error) {
	if n.silent {
		return nil, errors.New("no runtime")
	}
	at := metav1.NewTime(time.UnixMilli(1_767_323_045_600))
	number := func(v uint64) *uint64 { return &v }
	cpu := &statsv1alpha1.CPUStats{Time: at, UsageCoreNanoSeconds: number(1_500_000_000)}
	memory := &statsv1alpha1.MemoryStats{Time: at, WorkingSetBytes: number(4096)}
	return &statsv1alpha1.Summary{
		Node: statsv1alpha1.NodeStats{CPU: cpu, Memory: memory},
		Pods: []statsv1alpha1.PodStats{{
			PodRef: statsv1alpha1.PodReference{Namespace: "ns", Name: "web"}, CPU: cpu,
			Containers: []statsv1alpha1.ContainerStats{{Name: "c", StartTime: at, CPU: cpu, Memory: memory}, {Name: "new"}},
		}},
	}, nil
}
func (n *node) Configuration() any {
	return map[string]any{"kubeletconfig": map[string]int{"maxPods": 110}}
}
func (n *node) Healthy() error { return nil }

func (n *node) ContainerStatus(_ context.Context, r *runtimeapi.ContainerStatusRequest) (*runtimeapi.ContainerStatusResponse, error) {
	return &runtimeapi.ContainerStatusResponse{Status: &runtimeapi.ContainerStatus{Id: r.ContainerId, LogPath: n.logPath}}, nil
}
func (n *node) ExecSync(_ context.Context, r *runtimeapi.ExecSyncRequest) (*runtimeapi.ExecSyncResponse, error) {
	return &runtimeapi.ExecSyncResponse{Stdout: []byte(r.ContainerId + ":" + strings.Join(r.Cmd, ","))}, nil
}
func (n *node) Exec(_ context.Context, r *runtimeapi.ExecRequest) (*runtimeapi.ExecResponse, error) {
	return &runtimeapi.ExecResponse{Url: n.streaming + "/exec/" + r.ContainerId + "/" + strings.Join(r.Cmd, "-")}, nil
}
func (n *node) Attach(context.Context, *runtimeapi.AttachRequest) (*runtimeapi.AttachResponse, error) {
	return nil, errors.New("cannot attach")
}
func (n *node) PortForward(_ context.Context, r *runtimeapi.PortForwardRequest) (*runtimeapi.PortForwardResponse, error) {
	return &runtimeapi.PortForwardResponse{Url: n.streaming + "/portforward/" + r.PodSandboxId}, nil
}

func newNode(t *testing.T) *node {
	path := filepath.Join(t.TempDir(), "0.log")
	if err := os.WriteFile(path, []byte("2026-01-02T03:04:05.6Z stdout F hello\n2026-01-02T03:04:06Z stderr F world\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return &node{logPath: path, pod: &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web", UID: "u"},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c"}, {Name: "waits"}, {Name: "new"}}},
		Status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{
			{Name: "c", ContainerID: "test://cid", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}},
			{Name: "waits", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff"}}},
		}},
	}}
}

func newServer(t *testing.T, n *node, change func(*server.Config)) *server.Server {
	t.Helper()
	c := server.Config{
		Kubelet: n, Runtime: n, NodeName: "node-1",
		Certificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return nil, errors.New("unused") },
		ClientCAs:   x509.NewCertPool,
		Tokens: authenticator.TokenFunc(func(_ context.Context, token string) (*authenticator.Response, bool, error) {
			groups := []string{}
			if token == "root" {
				groups = []string{user.SystemPrivilegedGroup}
			}
			return &authenticator.Response{User: &user.DefaultInfo{Name: token, Groups: groups}}, token != "bad", nil
		}),
		// A user may what their name says.
		Authorizer: authorizer.AuthorizerFunc(func(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
			if a.GetResource() != "nodes" || a.GetName() != "node-1" || !a.IsResourceRequest() {
				t.Errorf("asked for %v", a)
			}
			if a.GetUser().GetName() == a.GetVerb()+"-"+a.GetSubresource() {
				return authorizer.DecisionAllow, "", nil
			}
			return authorizer.DecisionNoOpinion, "", nil
		}),
	}
	if change != nil {
		change(&c)
	}
	s, err := server.New(c)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestAuthorization(t *testing.T) {
	t.Parallel()
	s := newServer(t, newNode(t), nil)
	for _, c := range []struct {
		token, method, path string
		want                int
	}{
		{"", "GET", "/pods", 401},
		{"bad", "GET", "/pods", 401},
		{"nobody", "GET", "/pods", 403},
		{"get-pods", "GET", "/pods", 200},
		{"get-proxy", "GET", "/pods", 200},
		{"get-pods", "GET", "/configz", 403},
		{"get-configz", "GET", "/configz", 200},
		{"get-healthz", "GET", "/healthz", 200},
		{"get-stats", "GET", "/stats/summary", 200},
		{"get-proxy", "GET", "/stats/summary", 403},
		{"get-metrics", "GET", "/metrics/resource", 200},
		{"get-stats", "GET", "/metrics/resource", 403},
		{"get-proxy", "GET", "/containerLogs/ns/web/c", 200},
		{"get-proxy", "POST", "/run/ns/web/c?cmd=ls", 403},
		{"create-proxy", "POST", "/run/ns/web/c?cmd=ls", 200},
		{"root", "POST", "/run/ns/web/c?cmd=ls", 200},
		{"root", "GET", "/nonsense", 404},
		{"root", "POST", "/pods", 405},
	} {
		r := httptest.NewRequest(c.method, c.path, http.NoBody)
		if c.token != "" {
			r.Header.Set("Authorization", "Bearer "+c.token)
		}
		w := httptest.NewRecorder()
		s.Handler().ServeHTTP(w, r)
		if w.Code != c.want {
			t.Errorf("%s %s as %q: %d %s, want %d", c.method, c.path, c.token, w.Code, w.Body, c.want)
		}
	}
}

func TestAnswers(t *testing.T) {
	t.Parallel()
	s := newServer(t, newNode(t), nil)
	for _, c := range []struct {
		method, path string
		code         int
		want         string
	}{
		{"GET", "/healthz", 200, "ok"},
		{"GET", "/configz", 200, `{"kubeletconfig":{"maxPods":110}}`},
		{"GET", "/runningpods/", 500, "no runtime"},
		{"POST", "/run/ns/web/u/c?cmd=a+b", 200, "cid:a,b"},
		{"POST", "/run/ns/web/other/c?cmd=a", 404, "pod not found"},
		{"POST", "/run/ns/none/c?cmd=a", 404, "pod does not exist"},
		{"GET", "/containerLogs/ns/web/c", 200, "hello\nworld\n"},
		{"GET", "/containerLogs/ns/web/c?follow=true", 200, "hello\nworld\n"},
		{"GET", "/containerLogs/ns/web/c?tailLines=1&timestamps=true", 200, "2026-01-02T03:04:06.000000000Z world\n"},
		{"GET", "/containerLogs/ns/web/c?stream=Stdout", 200, "hello\n"},
		{"GET", "/containerLogs/ns/web/c?sinceTime=2026-01-02T03:04:06Z", 200, "world\n"},
		{"GET", "/containerLogs/ns/web/c?tailLines=-1", 422, "tailLines=-1"},
		{"GET", "/containerLogs/ns/web/c?previous=true", 400, `previous terminated container "c" in pod "web" not found`},
		{"GET", "/containerLogs/ns/none/c", 404, `pod "none" does not exist`},
		{"GET", "/containerLogs/ns/web/no", 404, `container "no" not found in pod "web"`},
		{"GET", "/containerLogs/ns/web/waits", 400, `container "waits" in pod "web" is waiting to start: trying and failing to pull image`},
		{"GET", "/containerLogs/ns/web/new", 400, `container "new" in pod "web" is not available`},
		{"POST", "/exec/ns/web/c?command=ls", 400, "you must specify at least 1 of stdin, stdout, stderr"},
		{"POST", "/exec/ns/web/waits?command=ls&output=1", 500, `container not found ("waits")`},
		{"POST", "/attach/ns/web/c?output=1", 500, "cannot attach"},
		{"GET", "/stats/summary?only_cpu_and_memory=true", 200, `"nodeName":"brief"`},
	} {
		r := httptest.NewRequest(c.method, c.path, http.NoBody)
		r.Header.Set("Authorization", "Bearer root")
		w := httptest.NewRecorder()
		s.Handler().ServeHTTP(w, r)
		if w.Code != c.code || !strings.Contains(w.Body.String(), c.want) {
			t.Errorf("%s %s: %d %s\nwant %d %s", c.method, c.path, w.Code, w.Body, c.code, c.want)
		}
	}
	r := httptest.NewRequest(http.MethodGet, "/pods", http.NoBody)
	r.Header.Set("Authorization", "Bearer root")
	w := httptest.NewRecorder()
	s.Handler().ServeHTTP(w, r)
	var list corev1.PodList
	if err := json.Unmarshal(w.Body.Bytes(), &list); err != nil || list.Kind != "PodList" || len(list.Items) != 1 || list.Items[0].Name != "web" {
		t.Errorf("/pods: %v %+v", err, list)
	}
}

// The whole way: TLS with a client certificate, an upgrade, and bytes in both
// directions to the runtime's streaming server.
func TestUpgradeOverTLS(t *testing.T) {
	t.Parallel()
	streaming := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		conn, rw, err := w.(http.Hijacker).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close() //nolint:errcheck // the test is over
		_, _ = io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\n\r\n"+r.URL.Path+"\n")
		line, err := rw.ReadString('\n')
		if err != nil {
			return // the client only wanted to be connected
		}
		_, _ = io.WriteString(conn, "echo "+line)
	}))
	t.Cleanup(streaming.Close)

	ca, caKey := certificate(t, "ca", nil, nil, nil)
	foreign, foreignKey := certificate(t, "foreign", nil, nil, nil)
	serving := pair(certificate(t, "node", nil, ca, caKey))
	pool := x509.NewCertPool()
	pool.AddCert(ca)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	n := newNode(t)
	n.streaming = streaming.URL
	s := newServer(t, n, func(c *server.Config) {
		c.Listener = listener
		c.ClientCAs = func() *x509.CertPool { return pool }
		c.Certificate = func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return &serving, nil }
	})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})

	request := func(path string, client tls.Certificate) (*http.Response, *bufio.Reader, net.Conn) {
		t.Helper()
		conn, err := (&tls.Dialer{Config: &tls.Config{RootCAs: pool, ServerName: "127.0.0.1", Certificates: []tls.Certificate{client}}}).
			DialContext(t.Context(), "tcp", listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() }) //nolint:errcheck // the test is over
		_, err = io.WriteString(conn, "POST "+path+" HTTP/1.1\r\nHost: node\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\nContent-Length: 0\r\n\r\n")
		if err != nil {
			t.Fatal(err)
		}
		in := bufio.NewReader(conn)
		response, err := http.ReadResponse(in, nil)
		if err != nil {
			t.Fatal(err)
		}
		return response, in, conn
	}
	response, in, conn := request("/exec/ns/web/c?command=ls&command=-l&output=1", pair(certificate(t, "create-proxy", nil, ca, caKey)))
	if response.StatusCode != http.StatusSwitchingProtocols {
		t.Fatalf("got %s", response.Status)
	}
	if _, err := io.WriteString(conn, "hi\n"); err != nil {
		t.Fatal(err)
	}
	got, err := io.ReadAll(in)
	if want := "/exec/cid/ls--l\necho hi\n"; string(got) != want || err != nil {
		t.Errorf("got %q, %v; want %q", got, err, want)
	}
	response, _, _ = request("/portForward/ns/web", pair(certificate(t, "admin", []string{user.SystemPrivilegedGroup}, ca, caKey)))
	if response.StatusCode != http.StatusSwitchingProtocols {
		t.Errorf("port-forward: %s", response.Status)
	}
	response, _, _ = request("/exec/ns/web/c?command=ls&output=1", pair(certificate(t, "create-proxy", nil, foreign, foreignKey)))
	if response.StatusCode != http.StatusUnauthorized {
		t.Errorf("with a foreign certificate: %s", response.Status)
	}
}

func certificate(t *testing.T, name string, groups []string, ca *x509.Certificate, caKey *ecdsa.PrivateKey) (*x509.Certificate, *ecdsa.PrivateKey) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name, Organization: groups},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, BasicConstraintsValid: true, IsCA: ca == nil,
	}
	parent, signer := ca, caKey
	if ca == nil {
		parent, signer = template, key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, signer)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return cert, key
}

func pair(cert *x509.Certificate, key *ecdsa.PrivateKey) tls.Certificate {
	return tls.Certificate{Certificate: [][]byte{slices.Clone(cert.Raw)}, PrivateKey: key}
}

// TestResourceMetrics compares with what a metrics collector expects.
func TestResourceMetrics(t *testing.T) {
	t.Parallel()
	get := func(n *node) string {
		r := httptest.NewRequest(http.MethodGet, "/metrics/resource", http.NoBody)
		r.Header.Set("Authorization", "Bearer root")
		w := httptest.NewRecorder()
		newServer(t, n, nil).Handler().ServeHTTP(w, r)
		if w.Code != http.StatusOK || !strings.HasPrefix(w.Header().Get("Content-Type"), "text/plain; version=0.0.4") {
			t.Errorf("%d %s", w.Code, w.Header())
		}
		return w.Body.String()
	}
	n := newNode(t)
	want := `# HELP container_cpu_usage_seconds_total Cumulative cpu time consumed by the container in core-seconds
# TYPE container_cpu_usage_seconds_total counter
container_cpu_usage_seconds_total{container="c",namespace="ns",pod="web"} 1.5 1767323045600
# HELP container_memory_working_set_bytes Current working set of the container in bytes
# TYPE container_memory_working_set_bytes gauge
container_memory_working_set_bytes{container="c",namespace="ns",pod="web"} 4096 1767323045600
# HELP container_start_time_seconds Start time of the container since unix epoch in seconds
# TYPE container_start_time_seconds gauge
container_start_time_seconds{container="c",namespace="ns",pod="web"} 1.7673230456e+09
# HELP node_cpu_usage_seconds_total Cumulative cpu time consumed by the node in core-seconds
# TYPE node_cpu_usage_seconds_total counter
node_cpu_usage_seconds_total 1.5 1767323045600
# HELP node_memory_working_set_bytes Current working set of the node in bytes
# TYPE node_memory_working_set_bytes gauge
node_memory_working_set_bytes 4096 1767323045600
# HELP pod_cpu_usage_seconds_total Cumulative cpu time consumed by the pod in core-seconds
# TYPE pod_cpu_usage_seconds_total counter
pod_cpu_usage_seconds_total{namespace="ns",pod="web"} 1.5 1767323045600
# HELP resource_scrape_error 1 if there was an error while getting container metrics, 0 otherwise
# TYPE resource_scrape_error gauge
resource_scrape_error 0
`
	if got := get(n); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	n.silent = true
	if got := get(n); !strings.HasSuffix(got, "\nresource_scrape_error 1\n") || strings.Contains(got, "node_") {
		t.Errorf("without figures:\n%s", got)
	}
}
