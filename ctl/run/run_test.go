package run_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/periplus/periplus/ctl/run"
)

// peri runs the command without a cluster.
func peri(t *testing.T, args ...string) (string, error) {
	t.Helper()
	cmd := run.New()
	var out bytes.Buffer
	cmd.SetOut(&out)
	cmd.SetErr(&out)
	cmd.SilenceUsage, cmd.SilenceErrors = true, true
	config := filepath.Join(t.TempDir(), "config")
	if err := os.WriteFile(config, []byte("apiVersion: v1\nkind: Config\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	// Before the arguments: what follows "--" is the program's.
	cmd.SetArgs(append([]string{"--kubeconfig", config, "--server", "https://127.0.0.1:1"}, args...))
	err := cmd.ExecuteContext(t.Context())
	return out.String(), err
}

// TestBadArguments are refused before anything is sent: which, and why.
func TestBadArguments(t *testing.T) {
	t.Parallel()
	for want, args := range map[string]string{
		"want one NAME before --, got 0":                                              "--image=x",
		`NAME: "Web" is not allowed: a lowercase RFC 1123 label`:                      "Web --image=x",
		`NAME: "a.b" is not allowed`:                                                  "a.b --image=x",
		`NAME: "0web" is not allowed: as the name of a Service`:                       "0web --image=x --port=80 --expose",
		"--image is missing":                                                          "web",
		`--image: "X:y:z" is not allowed`:                                             "web --image=X:y:z",
		`--restart: "Maybe" is not allowed`:                                           "web --image=x --restart=Maybe",
		`--replicas: "-1" is not allowed`:                                             "web --image=x --replicas=-1",
		`--replicas: "2" is not allowed: only a Deployment`:                           "web --image=x --replicas=2 --restart=Never",
		`--port: "0" is not allowed`:                                                  "web --image=x --port=0",
		"--expose needs --port":                                                       "web --image=x --expose",
		`--env: "A" is not allowed: must be NAME=value`:                               "web --image=x --env=A",
		`--labels: "a" is not allowed: must be key=value`:                             "web --image=x --labels=a",
		`--limits: "cpu=x" is not allowed`:                                            "web --image=x --limits=cpu=x",
		`--limits: "cpu=-1" is not allowed: must be greater than or equal to 0`:       "web --image=x --limits=cpu=-1",
		`--requests: "cpu=2" is not allowed: must be less than or equal to cpu limit`: "web --image=x --limits=cpu=1 --requests=cpu=2",
		`--dry-run: "maybe" is not allowed`:                                           "web --image=x --dry-run=maybe",
		`--output: "table" is not allowed`:                                            "web --image=x -o table",
		"--tty needs --stdin":                                                         "web --image=x -t",
		"--rm needs --stdin":                                                          "web --image=x --rm",
		"--overrides: open nothing.yaml: no such file":                                "web --image=x --overrides=@nothing.yaml",
		"--overrides: run_test.go is neither YAML nor JSON":                           "web --image=x --overrides=@run_test.go",
		`--overrides: "{" is not valid JSON`:                                          "web --image=x --overrides={",
		`the result is not a Deployment: unknown field "spec.replica"`:                `web --image=x --overrides={"spec":{"replica":2}}`,
		"the result is not a Deployment: json: cannot unmarshal":                      `web --image=x --overrides={"spec":{"replicas":"2"}}`,
		"no cluster answers at https://127.0.0.1:1: start one with \"peri up\"":       "web --image=x",
	} {
		t.Run(args, func(t *testing.T) {
			t.Parallel()
			out, err := peri(t, strings.Fields(args)...)
			if err == nil || !strings.Contains(err.Error(), want) || out != "" {
				t.Errorf("error %v, output %q; want %q and none", err, out, want)
			}
		})
	}
}

// TestDryRun prints what would be sent.
func TestDryRun(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		args string
		want []string
	}{
		{"web --image=x --port=80 --expose --dry-run", []string{"deployment.apps/web created (dry run)\nservice/web created (dry run)\n"}},
		{"web --image=x --restart=OnFailure --dry-run=client -o name", []string{"job.batch/web\n"}},
		{"web --image=x --restart=Never --dry-run=client -o yaml --command -- a b", []string{"kind: Pod\n", "run: web\n", "  - command:\n    - a\n    - b\n", "restartPolicy: Never\n"}},
		{"web --image=x --dry-run=client -o yaml --env=A.b=c=d --labels=app=other,tier=front --port=80 --expose", []string{
			"---\n", "      app: other\n  strategy", "        tier: front\n", "value: c=d\n", "  selector:\n    app: other\n"}},
		{`web --image=x --dry-run=client -o yaml --overrides={"metadata":{"name":"db"},"spec":{"template":{"spec":{"containers":[{"name":"web","tty":true}]}}}}`, []string{
			"name: db\n", "image: x\n", "tty: true\n"}},
		{"web --image=x --dry-run=client -o yaml --overrides=@testdata/more.yaml", []string{"image: x\n", "stdin: true\n"}},
	} {
		t.Run(test.args, func(t *testing.T) {
			t.Parallel()
			out, err := peri(t, strings.Fields(test.args)...)
			if err != nil {
				t.Fatal(err)
			}
			for _, want := range test.want {
				if !strings.Contains(out, want) {
					t.Errorf("%q is missing in\n%s", want, out)
				}
			}
		})
	}
}
