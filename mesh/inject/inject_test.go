package inject_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	"sigs.k8s.io/yaml"

	"github.com/periplus/periplus/mesh/inject"
)

var update = flag.Bool("update", false, "write the golden files anew")

func ask(t *testing.T, pod string, prepare func(context.Context, string) error) *admissionv1.AdmissionResponse {
	t.Helper()
	h := inject.NewHandler(inject.Config{
		Image:   inject.Image{Name: "periplus.io/sidecar:v1", Init: []string{"/sidecar", "init"}, Proxy: []string{"/sidecar", "proxy"}, Wait: []string{"/sidecar", "wait"}},
		Prepare: prepare, Log: slog.New(slog.DiscardHandler),
	})
	raw, err := yaml.YAMLToJSON([]byte(pod))
	if err != nil {
		t.Fatal(err)
	}
	body, err := json.Marshal(map[string]any{
		"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
		"request": map[string]any{"uid": "u1", "namespace": "shop", "object": json.RawMessage(raw)},
	})
	if err != nil {
		t.Fatal(err)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodPost, inject.Path, bytes.NewReader(body)))
	var review admissionv1.AdmissionReview
	if err := json.Unmarshal(w.Body.Bytes(), &review); err != nil || review.Response == nil || review.Response.UID != "u1" {
		t.Fatalf("%d %s: %v", w.Code, w.Body, err)
	}
	return review.Response
}

const web = `
apiVersion: v1
kind: Pod
metadata:
  generateName: web-7d9f8-
  labels: {app: web, version: v1}
  annotations: {traffic.sidecar.istio.io/excludeInboundPorts: "9100"}
  ownerReferences: [{apiVersion: apps/v1, kind: ReplicaSet, name: web-7d9f8, uid: u, controller: true}]
spec:
  initContainers: [{name: wait, image: busybox}]
  containers:
  - name: web
    image: nginx
    ports: [{name: http, containerPort: 8080}]
    readinessProbe: {httpGet: {path: /ready, port: http}, timeoutSeconds: 2}
    livenessProbe: {tcpSocket: {port: 8080}}
    startupProbe: {exec: {command: ["true"]}}
`

func TestInjection(t *testing.T) {
	t.Parallel()
	prepared := ""
	r := ask(t, web, func(_ context.Context, ns string) error { prepared = ns; return nil })
	if !r.Allowed || prepared != "shop" {
		t.Fatalf("%+v, prepared %q", r, prepared)
	}
	var patch any
	if err := json.Unmarshal(r.Patch, &patch); err != nil {
		t.Fatal(err)
	}
	got, err := yaml.Marshal(patch)
	if err != nil {
		t.Fatal(err)
	}
	golden := filepath.Join("testdata", "web.yaml")
	if *update {
		if err := os.WriteFile(golden, got, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("the patch is\n%s\nwant\n%s", got, want)
	}
}

func TestDecisions(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ pod, refused string }{
		"host network": {"spec: {hostNetwork: true}", ""},
		"label":        {`metadata: {labels: {sidecar.istio.io/inject: "false"}}`, ""},
		"annotation":   {`metadata: {annotations: {sidecar.istio.io/inject: "false"}}`, ""},
		"again":        {"metadata: {annotations: {sidecar.istio.io/status: x}}\nspec: {initContainers: [{name: istio-proxy}]}", ""},
		"ports":        {`metadata: {annotations: {traffic.sidecar.istio.io/includeInboundPorts: "80,x"}}`, "injection failed due to invalid annotation"},
		"ranges":       {`metadata: {annotations: {traffic.sidecar.istio.io/excludeOutboundIPRanges: "10.0.0.0/33"}}`, "invalid CIDR address: 10.0.0.0/33"},
		"memory":       {`metadata: {annotations: {sidecar.istio.io/proxyMemory: much}}`, "sidecar.istio.io/proxyMemory"},
	} {
		r := ask(t, c.pod, nil)
		switch {
		case c.refused == "" && (!r.Allowed || r.Patch != nil):
			t.Errorf("%s: %+v, want it left alone", name, r)
		case c.refused != "" && (r.Allowed || !strings.Contains(r.Result.Message, c.refused)):
			t.Errorf("%s: %+v, want %q", name, r, c.refused)
		}
	}
	if r := ask(t, "spec: {containers: [{name: c}]}", func(context.Context, string) error { return errors.New("no rights") }); r.Allowed || !strings.Contains(r.Result.Message, "no rights") {
		t.Errorf("without what it mounts: %+v", r)
	}
}
