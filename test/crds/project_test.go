package crds_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
)

// A project has definitions, and examples of what they are for, in its module.
type project struct {
	name, module string
	definitions  string   // folder in the module
	good, bad    []string // folders in the module, and files of this package
	explain      map[string]string
}

var projects = []project{
	{
		name: "cert-manager", module: "github.com/cert-manager/cert-manager@v1.21.2", definitions: "deploy/crds",
		good: []string{"./testdata/cert-manager.yaml"}, bad: []string{"./testdata/cert-manager-bad.yaml"},
		explain: map[string]string{"certificates.spec.dnsNames": "cert-manager.io/v1", "issuers.spec.acme.solvers.http01": "cert-manager.io/v1"},
	},
	{
		name: "gateway-api", module: "sigs.k8s.io/gateway-api@v1.6.3", definitions: "config/crd/standard",
		good: []string{"examples/standard"}, bad: []string{"hack/invalid-examples/standard"},
		explain: map[string]string{"httproutes.spec.rules.matches.path": "gateway.networking.k8s.io/v1"},
	},
	{
		name: "gateway-api-experimental", module: "sigs.k8s.io/gateway-api@v1.6.3", definitions: "config/crd/experimental",
		good: []string{"examples/experimental", "examples/standard"}, bad: []string{"hack/invalid-examples/experimental", "hack/invalid-examples/standard"},
		explain: map[string]string{"udproutes.spec.rules.backendRefs": "gateway.networking.k8s.io/v1alpha2"},
	},
	{
		name: "prometheus-operator", module: "github.com/prometheus-operator/prometheus-operator@v0.85.0", definitions: "example/prometheus-operator-crd",
		good:    []string{"example/user-guides/getting-started", "example/user-guides/alerting", "example/shards", "example/storage", "example/thanos", "example/additional-scrape-configs", "./testdata/prometheus.yaml"},
		bad:     []string{"./testdata/prometheus-bad.yaml"},
		explain: map[string]string{"prometheuses.spec.remoteWrite": "monitoring.coreos.com/v1", "servicemonitors.spec.endpoints": "monitoring.coreos.com/v1"},
	},
}

// fetch returns where a module's files are. Without a way to a module proxy the test is skipped.
func fetch(t *testing.T, module string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "mod", "download", "-json", module)
	cmd.Dir = t.TempDir() // no module of ours
	out, err := cmd.Output()
	var got struct{ Dir, Error string }
	if err := json.Unmarshal(out, &got); err != nil {
		t.Fatalf("go mod download: %v: %s", err, out)
	}
	if err != nil || got.Error != "" {
		t.Skipf("%s cannot be had here: %v %s", module, err, got.Error)
	}
	return got.Dir
}

// A document is one object of a file.
type document struct {
	file string
	*unstructured.Unstructured
}

// read returns the objects of all files below a folder, or of one file.
func read(t *testing.T, path string) []document {
	t.Helper()
	var out []document
	err := filepath.WalkDir(path, func(file string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(file, ".yaml") || filepath.Base(file) == "kustomization.yaml" {
			return err
		}
		data, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		list := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(data), 4096)
		for {
			var value any
			if err := list.Decode(&value); errors.Is(err, io.EOF) {
				return nil
			} else if err != nil {
				return err
			}
			if object, ok := value.(map[string]any); ok && object["kind"] != nil {
				out = append(out, document{filepath.Base(file), &unstructured.Unstructured{Object: object}})
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func (p *project) read(t *testing.T, dir string, paths []string) (out []document) {
	t.Helper()
	for _, path := range paths {
		if !strings.HasPrefix(path, "./") {
			path = filepath.Join(dir, path)
		}
		out = append(out, read(t, path)...)
	}
	return out
}
