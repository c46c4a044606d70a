package openapi_test

import (
	"compress/gzip"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	openapiv3 "github.com/google/gnostic-models/openapiv3"
	"google.golang.org/protobuf/proto"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/openapi3"
	openapiproto "k8s.io/kube-openapi/pkg/util/proto"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/periplus/periplus/apiserver/openapi"
	"github.com/periplus/periplus/apiserver/registry"
	"github.com/periplus/periplus/apiserver/rest"
)

func TestDocumentsOfAllGroupVersions(t *testing.T) {
	t.Parallel()
	_, config := start(t)
	d, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	root := openapi3.NewRoot(d.OpenAPIV3())
	served, err := root.GroupVersions()
	if err != nil {
		t.Fatal(err)
	}
	groups, err := d.ServerGroups()
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, g := range groups.Groups {
		n += len(g.Versions)
	}
	if len(served) != n || n < 20 {
		t.Errorf("%d documents for %d group versions", len(served), n)
	}
	ids := map[string]string{}
	for _, gv := range served {
		doc, err := root.GVSpec(gv)
		if err != nil {
			t.Fatalf("%s: %v", gv, err)
		}
		whole, err := root.GVSpecAsMap(gv)
		if err != nil {
			t.Fatalf("%s: %v", gv, err)
		}
		eachRef(whole, func(ref string) {
			if name, ok := strings.CutPrefix(ref, "#/components/schemas/"); !ok || doc.Components.Schemas[name] == nil {
				t.Errorf("%s: %s leads nowhere", gv, ref)
			}
		})
		for path, methods := range whole["paths"].(map[string]any) {
			for method, op := range methods.(map[string]any) {
				if method == "parameters" {
					continue
				}
				id := op.(map[string]any)["operationId"].(string)
				if other, taken := ids[id]; taken {
					t.Errorf("%s %s and %s are both %s", method, path, other, id)
				}
				ids[id] = method + " " + path
			}
		}
	}
}

// eachRef shows all references inside a document.
func eachRef(v any, show func(string)) {
	switch v := v.(type) {
	case map[string]any:
		for k, x := range v {
			if s, ok := x.(string); ok && k == "$ref" {
				show(s)
			} else {
				eachRef(x, show)
			}
		}
	case []any:
		for _, x := range v {
			eachRef(x, show)
		}
	}
}

func TestSchemasSayWhatTheTypesSay(t *testing.T) {
	t.Parallel()
	defs, err := openapi.Definitions(map[schema.GroupVersionKind]runtime.Object{
		corev1.SchemeGroupVersion.WithKind("Pod"):        &corev1.Pod{},
		appsv1.SchemeGroupVersion.WithKind("Deployment"): &appsv1.Deployment{},
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	field := func(model, name string) string {
		p, ok := defs[model].Properties[name]
		if !ok {
			t.Fatalf("%s has no %s", model, name)
		}
		p.Description = ""
		b, err := json.Marshal(&p)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	const core = "io.k8s.api.core.v1."
	for _, tt := range []struct{ model, name, want string }{
		{core + "PodSpec", "containers", `{"type":"array","items":{"$ref":"#/definitions/io.k8s.api.core.v1.Container"},"x-kubernetes-list-map-keys":["name"],"x-kubernetes-list-type":"map","x-kubernetes-patch-merge-key":"name","x-kubernetes-patch-strategy":"merge"}`},
		{core + "PodSpec", "nodeSelector", `{"type":"object","additionalProperties":{"type":"string"},"x-kubernetes-map-type":"atomic"}`},
		{core + "PodSpec", "restartPolicy", `{"type":"string","enum":["Always","Never","OnFailure"]}`},
		{core + "PodSpec", "activeDeadlineSeconds", `{"type":"integer","format":"int64"}`},
		{core + "ContainerPort", "containerPort", `{"type":"integer","format":"int32","default":0}`},
		{core + "ContainerPort", "protocol", `{"type":"string","default":"TCP","enum":["SCTP","TCP","UDP"]}`},
		{core + "Pod", "spec", `{"default":{},"$ref":"#/definitions/io.k8s.api.core.v1.PodSpec"}`},
		{core + "Volume", "emptyDir", `{"$ref":"#/definitions/io.k8s.api.core.v1.EmptyDirVolumeSource"}`},
		{"io.k8s.api.apps.v1.DeploymentSpec", "strategy", `{"default":{},"$ref":"#/definitions/io.k8s.api.apps.v1.DeploymentStrategy","x-kubernetes-patch-strategy":"retainKeys"}`},
	} {
		var got, want any
		if err := json.Unmarshal([]byte(field(tt.model, tt.name)), &got); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal([]byte(tt.want), &want); err != nil {
			t.Fatal(err)
		}
		a, _ := json.Marshal(got)
		b, _ := json.Marshal(want)
		if string(a) != string(b) {
			t.Errorf("%s.%s:\n got %s\nwant %s", tt.model, tt.name, a, b)
		}
	}
	if got := strings.Join(defs["io.k8s.api.apps.v1.DeploymentSpec"].Required, " "); got != "selector template" {
		t.Errorf("a deployment requires %q", got)
	}
	// Field management can be built from them.
	if _, err := managedfields.NewTypeConverter(defs, false); err != nil {
		t.Error(err)
	}
}

func TestV2IsRead(t *testing.T) {
	t.Parallel()
	_, config := start(t)
	d, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	doc, err := d.OpenAPISchema() // in protobuf
	if err != nil {
		t.Fatal(err)
	}
	models, err := openapiproto.NewOpenAPIData(doc)
	if err != nil {
		t.Fatal(err)
	}
	deployment := models.LookupModel("io.k8s.api.apps.v1.Deployment")
	if deployment == nil || deployment.GetExtensions()["x-kubernetes-group-version-kind"] == nil {
		t.Fatalf("no model of a deployment: %v", deployment)
	}
	size, ok := models.LookupModel("io.k8s.apimachinery.pkg.api.resource.Quantity").(*openapiproto.Primitive)
	if !ok || size.Type != "string" {
		t.Errorf("a quantity is %v in v2, want a string", size)
	}
}

// resources are one custom resource.
func resources() []rest.Listing {
	gv := schema.GroupVersion{Group: "example.com", Version: "v1"}
	r := &registry.Resource{
		GVR: gv.WithResource("boats"), Kind: "Boat", Namespaced: true,
		New:     func() runtime.Object { return &unstructured.Unstructured{} },
		NewList: func() runtime.Object { return &unstructured.UnstructuredList{} },
	}
	return []rest.Listing{{GVR: r.GVR, GVK: r.GVK(), Resource: r}}
}

func get(h http.Handler, path string, header ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodGet, path, nil)
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

func TestAnswers(t *testing.T) {
	t.Parallel()
	h := openapi.New(resources, "v1.37.2")
	length := spec.Schema{SchemaProps: spec.SchemaProps{Type: []string{"integer"}}}
	h.Schemas = func(schema.GroupVersionKind) *spec.Schema {
		return &spec.Schema{SchemaProps: spec.SchemaProps{Properties: map[string]spec.Schema{"length": length}}}
	}
	var index struct {
		Paths map[string]struct{ ServerRelativeURL string }
	}
	if err := json.Unmarshal(get(h, "/openapi/v3").Body.Bytes(), &index); err != nil {
		t.Fatal(err)
	}
	url := index.Paths["apis/example.com/v1"].ServerRelativeURL
	w := get(h, url)
	if w.Code != http.StatusOK || w.Header().Get("Cache-Control") != "public, immutable" {
		t.Fatalf("%d %v", w.Code, w.Header())
	}
	for _, part := range []string{"com.example.v1.Boat", "com.example.v1.BoatList", `"length":{"type":"integer"}`, "/apis/example.com/v1/namespaces/{namespace}/boats/{name}"} {
		if !strings.Contains(w.Body.String(), part) {
			t.Errorf("the document has no %s", part)
		}
	}
	if strings.Contains(w.Body.String(), "strategic-merge-patch") {
		t.Error("a custom resource cannot be patched strategically")
	}
	etag := w.Header().Get("Etag")
	if again := get(h, url, "If-None-Match", etag); again.Code != http.StatusNotModified {
		t.Errorf("the same document is sent again: %d", again.Code)
	}
	if old := get(h, "/openapi/v3/apis/example.com/v1?hash=OLD"); old.Code != http.StatusMovedPermanently || old.Header().Get("Location") != url {
		t.Errorf("an old hash: %d %q, want a redirection to %s", old.Code, old.Header().Get("Location"), url)
	}
	packed := get(h, url, "Accept-Encoding", "gzip")
	r, err := gzip.NewReader(packed.Body)
	if err != nil {
		t.Fatal(err)
	}
	if body, err := io.ReadAll(r); err != nil || string(body) != w.Body.String() {
		t.Errorf("compressed answer differs: %v", err)
	}
	const media = "application/com.github.proto-openapi.spec.v3.v1.0+protobuf"
	binary := get(h, url, "Accept", strings.Replace(media, "v3.v1", "v3@v1", 1))
	var doc openapiv3.Document
	if err := proto.Unmarshal(binary.Body.Bytes(), &doc); err != nil || binary.Header().Get("Content-Type") != media || doc.Info.Version != "v1.37.2" {
		t.Errorf("protobuf: %v %v", err, binary.Header())
	}
	for path, code := range map[string]int{"/openapi/v3/apis/none/v1": http.StatusNotFound, "/openapi/v4": http.StatusNotFound, "/openapi/v2": http.StatusOK} {
		if w := get(h, path); w.Code != code {
			t.Errorf("%s: %d, want %d", path, w.Code, code)
		}
	}
	if w := get(h, url, "Accept", "text/html"); w.Code != http.StatusNotAcceptable {
		t.Errorf("HTML: %d", w.Code)
	}
	// The document follows the resources.
	length.Type = []string{"string"}
	h.Tags = func(schema.GroupVersionKind) string { return "2" }
	changed := get(h, "/openapi/v3/apis/example.com/v1")
	if changed.Header().Get("Etag") == etag || !strings.Contains(changed.Body.String(), `"length":{"type":"string"}`) {
		t.Error("the document did not change with the schema")
	}
}

func BenchmarkCoreDocument(b *testing.B) {
	kinds := map[schema.GroupVersionKind]runtime.Object{corev1.SchemeGroupVersion.WithKind("Pod"): &corev1.Pod{}}
	for b.Loop() {
		if _, err := openapi.Definitions(kinds, nil); err != nil {
			b.Fatal(err)
		}
	}
}
