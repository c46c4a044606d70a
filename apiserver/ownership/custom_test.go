package ownership_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/kube-openapi/pkg/validation/spec"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/typed"

	"github.com/periplus/periplus/apiserver/openapi"
	"github.com/periplus/periplus/apiserver/ownership"
)

// customSchema has all that a schema can say about how fields are owned.
const customSchema = `{"type":"object","properties":{
"spec":{"type":"object","properties":{
	"text":{"type":"string"}, "number":{"type":"integer"}, "either":{"x-kubernetes-int-or-string":true},
	"whole":{"type":"array","items":{"type":"object","properties":{"a":{"type":"string"}}}},
	"set":{"type":"array","items":{"type":"string"},"x-kubernetes-list-type":"set"},
	"numbers":{"type":"array","items":{"type":"integer"},"x-kubernetes-list-type":"set"},
	"items":{"type":"array","x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["port","protocol"],
		"items":{"type":"object","properties":{"port":{"type":"integer"},"protocol":{"type":"string","default":"TCP"},"more":{"type":"object","additionalProperties":{"type":"string"}}}}},
	"one":{"type":"object","x-kubernetes-map-type":"atomic","properties":{"a":{"type":"string"}}},
	"map":{"type":"object","additionalProperties":{"type":"object","properties":{"a":{"type":"string"}}}},
	"loose":{"type":"object","x-kubernetes-preserve-unknown-fields":true}}},
"status":{"type":"object","properties":{"text":{"type":"string"}}}}}`

type custom struct {
	meta    metav1.ObjectMeta
	content map[string]any
}

func (c *custom) Parts() (*metav1.ObjectMeta, map[string]any) { return &c.meta, c.content }

func (c *custom) unstructured(t *testing.T, gvk schema.GroupVersionKind) *unstructured.Unstructured {
	t.Helper()
	meta, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&c.meta)
	if err != nil {
		t.Fatal(err)
	}
	out := &unstructured.Unstructured{Object: maps.Clone(c.content)}
	out.Object["metadata"] = meta
	out.SetGroupVersionKind(gvk)
	return out
}

func (m maker) custom() *custom {
	maybe := func(in map[string]any, name string, v any) {
		switch m.IntN(5) {
		case 0, 1, 2:
			in[name] = v
		case 3:
			in[name] = nil
		}
	}
	list := func(f func() any) []any {
		out := []any{}
		for range m.IntN(4) {
			out = append(out, f())
		}
		return out
	}
	texts := func() any {
		out := map[string]any{}
		for range m.IntN(3) {
			out[m.word()] = m.word()
		}
		return out
	}
	spec := map[string]any{}
	maybe(spec, "text", m.word())
	maybe(spec, "number", int64(m.IntN(3)))
	maybe(spec, "either", []any{int64(1), "x", int64(2)}[m.IntN(3)])
	maybe(spec, "whole", list(func() any { return map[string]any{"a": m.word()} }))
	maybe(spec, "set", list(func() any { return m.word() }))
	maybe(spec, "numbers", list(func() any { return int64(m.IntN(12)) }))
	maybe(spec, "items", list(func() any {
		item := map[string]any{"port": int64(m.IntN(12))}
		if m.once(2) {
			item["protocol"] = m.word()
		}
		maybe(item, "more", texts())
		return item
	}))
	maybe(spec, "one", map[string]any{"a": m.word()})
	maybe(spec, "map", map[string]any{m.word(): map[string]any{"a": m.word()}, m.word(): map[string]any{}})
	loose := map[string]any{}
	for range m.IntN(4) {
		maybe(loose, m.word(), []any{m.word(), int64(1), 1.0, texts(), list(func() any { return m.word() }), map[string]any{"b": texts()}}[m.IntN(6)])
	}
	maybe(spec, "loose", loose)
	out := &custom{content: map[string]any{}}
	maybe(out.content, "spec", spec)
	maybe(out.content, "status", map[string]any{"text": m.word()})
	out.meta.Labels = map[string]string{m.word(): m.word()}
	return out
}

// TestCompareCustom compares with the library what has no Go type.
func TestCompareCustom(t *testing.T) {
	t.Parallel()
	gvk := schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Thing"}
	s := &spec.Schema{}
	if err := json.Unmarshal([]byte(customSchema), s); err != nil {
		t.Fatal(err)
	}
	definitions, err := openapi.Definitions(map[schema.GroupVersionKind]runtime.Object{gvk: &unstructured.Unstructured{}}, func(schema.GroupVersionKind) *spec.Schema { return s })
	if err != nil {
		t.Fatal(err)
	}
	lib, err := managedfields.NewTypeConverter(definitions, false)
	if err != nil {
		t.Fatal(err)
	}
	empty, err := lib.ObjectToTyped((&custom{content: map[string]any{}}).unstructured(t, gvk))
	if err != nil {
		t.Fatal(err)
	}
	types, err := ownership.TypesOf(empty)
	if err != nil {
		t.Fatal(err)
	}
	m := maker{rand.New(rand.NewPCG(3, 4))} //nolint:gosec // the same each time
	for range 1200 {
		before, after := m.custom(), m.custom()
		l, err := lib.ObjectToTyped(before.unstructured(t, gvk), typed.AllowDuplicates)
		if err != nil {
			t.Fatal(err)
		}
		r, err := lib.ObjectToTyped(after.unstructured(t, gvk), typed.AllowDuplicates)
		if err != nil {
			t.Fatal(err)
		}
		c, err := l.Compare(r)
		if err != nil {
			t.Fatal(err)
		}
		c = c.FilterFields(fieldpath.NewExcludeSetFilter(fieldpath.NewSet(fieldpath.MakePathOrDie("status"))))
		var got ownership.Change
		err = types.Compare(before, after, ownership.Except([]string{"status"}), &got)
		taken, removed := written(t, c.Added.Union(c.Modified).Difference(stripped)), written(t, c.Removed.Difference(stripped))
		if err != nil || string(got.Taken) != taken || string(got.Removed) != removed {
			t.Fatalf("%v\ntaken   %s\nwant    %s\nremoved %s\nwant    %s\nbefore %s\nafter  %s", err, got.Taken, taken, got.Removed, removed, fmt.Sprint(before.content), fmt.Sprint(after.content))
		}
	}
	wrong := &custom{content: map[string]any{"spec": map[string]any{"text": []any{}}}}
	if err := types.Compare(&custom{}, wrong, nil, new(ownership.Change)); err == nil {
		t.Error("a list for a text")
	}
}
