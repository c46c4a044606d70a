package openapi_test

import (
	"net/http"
	"net/http/httptest"
	"strconv"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/periplus/periplus/apiserver/openapi"
	"github.com/periplus/periplus/apiserver/registry"
	"github.com/periplus/periplus/apiserver/registry/all"
	"github.com/periplus/periplus/apiserver/rest"
)

// A changing API has all built-in kinds and some custom ones, of which one changes.
type changing struct {
	listings []rest.Listing
	handler  *openapi.Handler
	state    int
}

func newChanging(custom int) *changing {
	c := &changing{}
	add := func(r *registry.Resource) {
		c.listings = append(c.listings, rest.Listing{GVR: r.GVR, GVK: r.GVK(), Resource: r})
		for _, v := range r.Also {
			c.listings = append(c.listings, rest.Listing{GVR: v.GV.WithResource(r.GVR.Resource), GVK: v.GV.WithKind(r.Kind), Resource: r})
		}
	}
	for _, r := range all.Resources(registry.Env{}) {
		add(r)
	}
	for i := range custom {
		gv := schema.GroupVersion{Group: "group" + strconv.Itoa(i) + ".example.com", Version: "v1"}
		add(&registry.Resource{
			GVR: gv.WithResource("boats"), Kind: "Boat", Namespaced: true,
			New:     func() runtime.Object { return &unstructured.Unstructured{} },
			NewList: func() runtime.Object { return &unstructured.UnstructuredList{} },
		})
	}
	c.handler = openapi.New(func() []rest.Listing { return append([]rest.Listing(nil), c.listings...) }, "v1.37.2")
	c.handler.Schemas = func(gvk schema.GroupVersionKind) *spec.Schema {
		s := &spec.Schema{}
		s.SetProperty("length", spec.Schema{SchemaProps: spec.SchemaProps{Type: []string{"integer"}, Description: strconv.Itoa(c.state)}})
		return s
	}
	c.handler.Tags = func(gvk schema.GroupVersionKind) string {
		if gvk.Group == "group0.example.com" {
			return strconv.Itoa(c.state)
		}
		return ""
	}
	return c
}

// get reads a document as client-go does.
func (c *changing) get(b *testing.B, path, media string) int {
	r := httptest.NewRequest(http.MethodGet, path, nil)
	r.Header.Set("Accept", media)
	r.Header.Set("Accept-Encoding", "gzip")
	w := httptest.NewRecorder()
	c.handler.ServeHTTP(w, r)
	if w.Code != http.StatusOK {
		b.Fatalf("%s: %d %s", path, w.Code, w.Body)
	}
	return w.Body.Len()
}

const (
	askedV2 = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"
	askedV3 = "application/com.github.proto-openapi.spec.v3@v1.0+protobuf"
)

// BenchmarkAfterChange reads a document after one of a hundred definitions has changed.
func BenchmarkAfterChange(b *testing.B) {
	for _, bb := range []struct{ name, path, media string }{
		{"v2/json", "/openapi/v2", "application/json"},
		{"v2/protobuf", "/openapi/v2", askedV2},
		{"v3/json", "/openapi/v3/apis/group0.example.com/v1", "application/json"},
		{"v3/protobuf", "/openapi/v3/apis/group0.example.com/v1", askedV3},
	} {
		b.Run(bb.name, func(b *testing.B) {
			c := newChanging(100)
			size := c.get(b, bb.path, bb.media)
			b.ReportAllocs()
			b.ReportMetric(float64(size), "bytes")
			for b.Loop() {
				c.state++
				c.get(b, bb.path, bb.media)
			}
		})
	}
}

// BenchmarkFirst builds a document that nobody has asked for yet.
func BenchmarkFirst(b *testing.B) {
	for _, media := range []string{"application/json", askedV2} {
		b.Run(media, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				newChanging(100).get(b, "/openapi/v2", media)
			}
		})
	}
}

// BenchmarkUnchanged reads what is there: the index of all documents, and one that the client has.
func BenchmarkUnchanged(b *testing.B) {
	c := newChanging(100)
	b.Run("index", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			c.get(b, "/openapi/v3", "application/json")
		}
	})
	b.Run("v2", func(b *testing.B) {
		c.get(b, "/openapi/v2", askedV2)
		b.ReportAllocs()
		for b.Loop() {
			c.get(b, "/openapi/v2", askedV2)
		}
	})
}
