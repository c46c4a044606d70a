package openapi_test

import (
	"bytes"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/kubectl/pkg/cmd"
	cmdutil "k8s.io/kubectl/pkg/cmd/util"

	"github.com/periplus/periplus/apiserver/request"
)

// serve puts the API on a loopback address for its administrator.
func serve(t *testing.T) string {
	t.Helper()
	s, _ := start(t)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		u := &user.DefaultInfo{Name: "admin", Groups: []string{user.SystemPrivilegedGroup, user.AllAuthenticated}}
		s.Handler().ServeHTTP(w, r.WithContext(request.WithUser(r.Context(), u)))
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// kubectl returns what a command of the real kubectl prints, and the message with
// which it would have ended. It has global state: only one at a time.
func kubectl(t *testing.T, url string, args ...string) (printed string, failure error) {
	t.Helper()
	var out bytes.Buffer
	streams := genericiooptions.IOStreams{In: strings.NewReader(""), Out: &out, ErrOut: &out}
	fatal := errors.New("fatal")
	cmdutil.BehaviorOnFatal(func(message string, _ int) {
		failure = errors.New(message)
		panic(fatal)
	})
	defer cmdutil.DefaultBehaviorOnFatal()
	defer func() {
		if p := recover(); p != nil && p != fatal { //nolint:errorlint // the panic value itself
			panic(p)
		}
		printed = out.String()
	}()
	root := cmd.NewKubectlCommand(cmd.KubectlOptions{
		IOStreams: streams, ConfigFlags: genericclioptions.NewConfigFlags(true).WithWarningPrinter(streams),
	})
	root.SetArgs(append([]string{"--server=" + url, "--cache-dir=" + t.TempDir(), "--kubeconfig=" + os.DevNull}, args...))
	root.SetOut(&out)
	root.SetErr(&out)
	failure = root.Execute()
	return "", failure
}

const deployment = `apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
spec:
  replicas: 1
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
      - name: web
        image: web:1
      - name: side
        image: side:1
`

// The real kubectl reads the documents. Not parallel: kubectl is not.
func TestKubectl(t *testing.T) {
	url := serve(t)
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	first := file("first.yaml", deployment)
	changed := file("changed.yaml", strings.NewReplacer("web:1", "web:2", "      - name: side\n        image: side:1\n", "").Replace(deployment))
	wrong := file("wrong.yaml", strings.Replace(deployment, "  replicas: 1", "  replica: 1", 1))
	for _, tt := range []struct {
		args  string
		want  []string // parts of what is printed
		never string
		fails string
	}{
		{args: "explain pods.spec --recursive", want: []string{"KIND:       Pod", "containers\t<[]Container> -required-", "restartPolicy\t<string>", "enum: Always, Never, OnFailure", "ephemeralContainers\t<[]EphemeralContainer>"}},
		{args: "explain deploy.spec.strategy.rollingUpdate.maxSurge", want: []string{"GROUP:      apps", "FIELD: maxSurge <IntOrString>"}},
		{args: "explain hpa --api-version=autoscaling/v1", want: []string{"VERSION:    v1", "spec\t<HorizontalPodAutoscalerSpec>"}},
		{args: "explain crd.spec.versions.schema.openAPIV3Schema", want: []string{"JSONSchemaProps"}},
		{args: "explain pods.spec.nothing", fails: "does not exist"},
		{args: "create --dry-run=server -f " + first, want: []string{"deployment.apps/web created (server dry run)"}},
		{args: "get deployments", want: []string{"No resources found"}},
		{args: "apply -f " + wrong, fails: `unknown field "spec.replica"`},
		{args: "apply -f " + first, want: []string{"deployment.apps/web created"}},
		{args: "apply -f " + first, want: []string{"deployment.apps/web unchanged"}},
		{args: "apply --dry-run=server -f " + changed, want: []string{"deployment.apps/web configured (server dry run)"}},
		{args: "apply -f " + changed, want: []string{"deployment.apps/web configured"}},
		{args: "get deployments -o wide", want: []string{"NAME   READY   UP-TO-DATE   AVAILABLE   AGE", "CONTAINERS   IMAGES   SELECTOR", "web          web:2    app=web"}, never: "side"},
		{args: "get deploy,cm -A", want: []string{"NAMESPACE", "deployment.apps/web"}},
		{args: "api-resources --api-group=apps", want: []string{"deployments", "deploy", "apps/v1"}},
	} {
		out, err := kubectl(t, url, strings.Fields(tt.args)...)
		if tt.fails != "" {
			if err == nil || !strings.Contains(err.Error(), tt.fails) {
				t.Errorf("kubectl %s: %v\n%s\nwant failure %q", tt.args, err, out, tt.fails)
			}
			continue
		}
		if err != nil {
			t.Errorf("kubectl %s: %v\n%s", tt.args, err, out)
			continue
		}
		for _, want := range tt.want {
			if !strings.Contains(out, want) {
				t.Errorf("kubectl %s prints\n%s\nwithout %q", tt.args, out, want)
			}
		}
		if tt.never != "" && strings.Contains(out, tt.never) {
			t.Errorf("kubectl %s prints\n%s\nwith %q", tt.args, out, tt.never)
		}
	}
}
