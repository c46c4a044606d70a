package probe

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/health"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/periplus/periplus/linux/porttest"
)

func TestHTTP(t *testing.T) {
	t.Parallel()
	mux := http.NewServeMux()
	release := make(chan struct{})
	mux.HandleFunc("/ok", func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "%s|%s|%s|%s", r.UserAgent(), r.Header.Get("Accept"), r.Header.Get("X-Custom"), r.Host)
	})
	mux.HandleFunc("/500", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(500) })
	mux.HandleFunc("/same", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/500", http.StatusFound) })
	mux.HandleFunc("/other", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "http://other.invalid/", http.StatusFound)
	})
	mux.HandleFunc("/loop", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/loop", http.StatusFound) })
	mux.HandleFunc("/slow", func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-release:
		case <-r.Context().Done():
		}
	})
	plain, secure := httptest.NewServer(mux), httptest.NewTLSServer(mux)
	t.Cleanup(plain.Close)
	t.Cleanup(secure.Close)
	t.Cleanup(func() { close(release) })

	p := New(Config{})
	t.Cleanup(p.Close)
	for _, c := range []struct {
		path    string
		tls     bool
		headers []corev1.HTTPHeader
		want    Result
		output  string // contained
		warning bool
	}{
		{path: "/ok", want: Success, output: "kube-probe/1.37|*/*||127.0.0.1:"},
		{path: "/ok?q=1", tls: true, want: Success, output: "kube-probe/1.37"},
		{path: "/ok", headers: []corev1.HTTPHeader{{Name: "x-custom", Value: "v"}, {Name: "User-Agent", Value: "me"}, {Name: "Accept", Value: ""}, {Name: "Host", Value: "name.test"}}, want: Success, output: "me||v|name.test"},
		{path: "/500", want: Failure, output: "HTTP probe failed with statuscode: 500"},
		{path: "/none", want: Failure, output: "HTTP probe failed with statuscode: 404"},
		{path: "/same", want: Failure, output: "HTTP probe failed with statuscode: 500"},
		{path: "/other", want: Success, output: "Probe terminated redirects", warning: true},
		{path: "/loop", want: Failure, output: "stopped after 10 redirects"},
	} {
		address, scheme := plain.URL, corev1.URISchemeHTTP
		if c.tls {
			address, scheme = secure.URL, corev1.URISchemeHTTPS
		}
		u, err := url.Parse(address)
		if err != nil {
			t.Fatal(err)
		}
		spec := &corev1.Container{Ports: []corev1.ContainerPort{{Name: "web", ContainerPort: atoi(t, u.Port())}}}
		got, output, err := p.once(t.Context(), &container{podIP: u.Hostname(), spec: spec}, &corev1.Probe{
			TimeoutSeconds: 30,
			ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{
				Path: c.path, Port: intstr.FromString("web"), Scheme: scheme, HTTPHeaders: c.headers,
			}},
		})
		if got != c.want || !strings.Contains(output, c.output) || errors.Is(err, errWarning) != c.warning {
			t.Errorf("%s: %v %q %v", c.path, got, output, err)
		}
	}
	u, err := url.Parse(plain.URL)
	if err != nil {
		t.Fatal(err)
	}
	result, output, err := p.httpGet(t.Context(), &container{podIP: u.Hostname(), spec: &corev1.Container{}},
		&corev1.HTTPGetAction{Path: "/slow", Port: intstr.FromString(u.Port())}, time.Millisecond)
	if result != Failure || err != nil || !strings.Contains(output, "Client.Timeout") {
		t.Errorf("slow: %v %q %v", result, output, err)
	}
}

func atoi(t *testing.T, s string) int32 {
	t.Helper()
	n, err := strconv.ParseInt(s, 10, 32)
	if err != nil {
		t.Fatal(err)
	}
	return int32(n)
}

func TestTCPAndGRPC(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server, services := grpc.NewServer(), health.NewServer()
	services.SetServingStatus("bad", healthv1.HealthCheckResponse_NOT_SERVING)
	healthv1.RegisterHealthServer(server, services)
	done := make(chan error, 1)
	go func() { done <- server.Serve(listener) }()
	t.Cleanup(func() {
		server.Stop()
		<-done //nolint:errcheck // it was stopped
	})
	_, closedPort, err := net.SplitHostPort(porttest.Closed(t))
	if err != nil {
		t.Fatal(err)
	}
	_, openPort, err := net.SplitHostPort(listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	c := &container{podIP: "127.0.0.1", spec: &corev1.Container{}}
	for name, k := range map[string]struct {
		port, output string
		service      *string
		grpc         bool
		want         Result
	}{
		"tcp open":    {port: openPort, want: Success},
		"tcp closed":  {port: closedPort, want: Failure, output: "connect: connection refused"},
		"grpc":        {port: openPort, grpc: true, want: Success, output: "service healthy"},
		"grpc bad":    {port: openPort, grpc: true, service: new("bad"), want: Failure, output: `service unhealthy (responded with "NOT_SERVING")`},
		"grpc absent": {port: openPort, grpc: true, service: new("no"), want: Failure, output: "error: health rpc probe failed"},
		"grpc closed": {port: closedPort, grpc: true, want: Failure, output: "timeout: failed to connect service"},
	} {
		var got Result
		var output string
		if k.grpc {
			got, output, err = grpcHealth(t.Context(), c, &corev1.GRPCAction{Port: atoi(t, k.port), Service: k.service}, time.Second)
		} else {
			got, output, err = tcp(t.Context(), c, &corev1.TCPSocketAction{Port: intstr.FromString(k.port)}, time.Minute)
		}
		if err != nil || got != k.want || !strings.Contains(output, k.output) {
			t.Errorf("%s: %v %q %v", name, got, output, err)
		}
	}
}

type execer func(*runtimeapi.ExecSyncRequest) (*runtimeapi.ExecSyncResponse, error)

func (e execer) ExecSync(_ context.Context, r *runtimeapi.ExecSyncRequest) (*runtimeapi.ExecSyncResponse, error) {
	return e(r)
}

func TestExec(t *testing.T) {
	t.Parallel()
	c := &container{id: "id", spec: &corev1.Container{Env: []corev1.EnvVar{{Name: "PORT", Value: "80"}}}}
	action := &corev1.ExecAction{Command: []string{"check", "$(PORT)", "$$(PORT)", "$(NO)", "$", "a$(PORT"}}
	for name, k := range map[string]struct {
		response *runtimeapi.ExecSyncResponse
		err      error
		want     Result
		output   string
		errored  bool
	}{
		"zero":    {response: &runtimeapi.ExecSyncResponse{Stdout: []byte("out"), Stderr: []byte("err")}, want: Success, output: "outerr"},
		"one":     {response: &runtimeapi.ExecSyncResponse{ExitCode: 1, Stderr: []byte("bad")}, want: Failure, output: "bad"},
		"timeout": {err: status.Error(codes.DeadlineExceeded, "x"), want: Failure, output: `command timed out: "check 80 $(PORT) $(NO) $ a$(PORT" timed out after 3s`},
		"away":    {err: status.Error(codes.Unavailable, "x"), errored: true},
	} {
		p := New(Config{Exec: execer(func(r *runtimeapi.ExecSyncRequest) (*runtimeapi.ExecSyncResponse, error) {
			if r.ContainerId != "id" || r.Timeout != 3 || !slices.Equal(r.Cmd, []string{"check", "80", "$(PORT)", "$(NO)", "$", "a$(PORT"}) {
				t.Errorf("asked %v", r)
			}
			return k.response, k.err
		})})
		got, output, err := p.exec(t.Context(), c, action, 3*time.Second)
		if got != k.want || output != k.output || (err != nil) != k.errored {
			t.Errorf("%s: %v %q %v", name, got, output, err)
		}
		p.Close()
	}
}
