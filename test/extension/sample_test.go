package extension_test

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/kubernetes"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	apiregistration "k8s.io/kube-aggregator/pkg/client/clientset_generated/clientset/typed/apiregistration/v1"

	"github.com/periplus/periplus/base/pki"
	"github.com/periplus/periplus/linux/porttest"
	"github.com/periplus/periplus/store/etcd"
)

// A sample is upstream's sample API server with an etcd of its own.
type sample struct {
	program, dir string
	port         int
	ca           []byte
	command      *exec.Cmd
	output       bytes.Buffer
}

// newSample builds the server and makes what it needs, all in a temporary directory.
func newSample(t *testing.T, kubeconfig []byte) *sample {
	t.Helper()
	s := &sample{dir: t.TempDir(), port: porttest.Free(t)}
	if s.program = os.Getenv("SAMPLE_APISERVER"); s.program == "" {
		s.program = filepath.Join(s.dir, "sample-apiserver")
		build := exec.CommandContext(t.Context(), "go", "build", "-o", s.program, "k8s.io/sample-apiserver")
		build.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := build.CombinedOutput(); err != nil {
			t.Fatalf("build the sample: %v\n%s", err, out)
		}
	}
	authority, err := pki.New("wardle")
	if err != nil {
		t.Fatal(err)
	}
	cert, key, err := authority.Pair(pki.Request{CommonName: "wardle", DNSNames: []string{"api.wardle.svc"}, Server: true})
	if err != nil {
		t.Fatal(err)
	}
	s.ca = authority.PEM
	for name, data := range map[string][]byte{"tls.crt": cert, "tls.key": key, "kubeconfig": kubeconfig} {
		if err := os.WriteFile(filepath.Join(s.dir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	kept, err := etcd.Start(context.Background(), etcd.Config{Dir: filepath.Join(s.dir, "etcd"), Socket: s.socket(), Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = kept.Close() })
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the sample said:\n%s", s.output.Bytes())
		}
	})
	return s
}

func (s *sample) socket() string { return filepath.Join(s.dir, "etcd.sock") }

func (s *sample) start(t *testing.T) {
	t.Helper()
	file := func(name string) string { return filepath.Join(s.dir, name) }
	s.command = exec.Command(s.program, //nolint:noctx // stopped by stop
		"--secure-port="+strconv.Itoa(s.port), "--bind-address=127.0.0.1", "--etcd-servers=unix://"+s.socket(),
		"--tls-cert-file="+file("tls.crt"), "--tls-private-key-file="+file("tls.key"),
		"--kubeconfig="+file("kubeconfig"), "--authentication-kubeconfig="+file("kubeconfig"), "--authorization-kubeconfig="+file("kubeconfig"))
	s.command.Stdout, s.command.Stderr = &s.output, &s.output
	s.command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := s.command.Start(); err != nil {
		t.Fatal(err)
	}
	command := s.command
	t.Cleanup(func() {
		if command.ProcessState == nil {
			_ = command.Process.Kill()
			_ = command.Wait()
		}
	})
}

func (s *sample) stop(t *testing.T) {
	t.Helper()
	if err := s.command.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = s.command.Wait() // killed
}

// register makes the Service and the APIService.
func (s *sample) register(ctx context.Context, t *testing.T, core *kubernetes.Clientset, services apiregistration.APIServiceInterface) {
	t.Helper()
	if _, err := core.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "wardle"}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "api"}, Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName, ExternalName: "localhost"}}
	if _, err := core.CoreV1().Services("wardle").Create(ctx, service, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	port := int32(s.port) //nolint:gosec // a port
	a := &apiregistrationv1.APIService{ObjectMeta: metav1.ObjectMeta{Name: registration}, Spec: apiregistrationv1.APIServiceSpec{
		Group: flunders.Group, Version: flunders.Version, GroupPriorityMinimum: 2000, VersionPriority: 200, CABundle: s.ca,
		Service: &apiregistrationv1.ServiceReference{Namespace: "wardle", Name: "api", Port: &port},
	}}
	if _, err := services.Create(ctx, a, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// await waits for a state of the APIService.
func await(ctx context.Context, t *testing.T, services apiregistration.APIServiceInterface, status apiregistrationv1.ConditionStatus, reason string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	w, err := services.Watch(ctx, metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector("metadata.name", registration).String()})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	var last *apiregistrationv1.APIService
	for e := range w.ResultChan() {
		a, ok := e.Object.(*apiregistrationv1.APIService)
		if !ok {
			t.Fatalf("watch: %v", e.Object)
		}
		last = a
		for _, c := range a.Status.Conditions {
			if c.Type == apiregistrationv1.Available && c.Status == status && c.Reason == reason {
				return
			}
		}
	}
	t.Fatalf("Available did not become %s (%s); the last was %+v", status, reason, last)
}
