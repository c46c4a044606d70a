package ownership_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	goruntime "runtime"
	"slices"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/typed"

	"github.com/periplus/periplus/apiserver/openapi"
	"github.com/periplus/periplus/apiserver/ownership"
	"github.com/periplus/periplus/apiserver/ownership/internal/shapes"
	"github.com/periplus/periplus/apiserver/registry"
	"github.com/periplus/periplus/apiserver/registry/all"
)

// A kind is one that the server stores, in one version.
type kind struct {
	gvk schema.GroupVersionKind
	new func() runtime.Object
}

var kinds = sync.OnceValue(func() []kind {
	var out []kind
	for _, r := range all.Resources(registry.Env{}) {
		if r.Create != nil {
			continue
		}
		out = append(out, kind{r.GVK(), r.New})
		for i := range r.Also {
			out = append(out, kind{r.Also[i].GV.WithKind(r.Kind), r.Also[i].New})
		}
	}
	slices.SortFunc(out, func(a, b kind) int { return cmp.Compare(a.gvk.String(), b.gvk.String()) })
	return out
})

// library is how structured-merge-diff knows all kinds.
var library = sync.OnceValues(func() (managedfields.TypeConverter, error) {
	objects := map[schema.GroupVersionKind]runtime.Object{}
	for _, k := range kinds() {
		objects[k.gvk] = k.new()
	}
	definitions, err := openapi.Definitions(objects, nil)
	if err != nil {
		return nil, err
	}
	return managedfields.NewTypeConverter(definitions, false)
})

// example returns upstream's example of a kind, or nil.
func example(t *testing.T, k kind) runtime.Object {
	t.Helper()
	file, _ := goruntime.FuncForPC(reflect.ValueOf((*corev1.Pod).DeepCopy).Pointer()).FileLine(0)
	data, err := os.ReadFile(filepath.Join(filepath.Dir(file), "..", "..", "testdata", "HEAD", cmp.Or(k.gvk.Group, "core")+"."+k.gvk.Version+"."+k.gvk.Kind+".json"))
	if err != nil {
		return nil
	}
	out := k.new()
	if err := json.Unmarshal(data, out); err != nil {
		t.Fatal(err)
	}
	return out
}

func clear(obj runtime.Object, gvk schema.GroupVersionKind) {
	obj.GetObjectKind().SetGroupVersionKind(gvk)
	obj.(metav1.ObjectMetaAccessor).GetObjectMeta().SetManagedFields(nil)
}

var stripped = fieldpath.NewSet(
	fieldpath.MakePathOrDie("apiVersion"), fieldpath.MakePathOrDie("kind"), fieldpath.MakePathOrDie("metadata", "name"), fieldpath.MakePathOrDie("metadata", "namespace"),
	fieldpath.MakePathOrDie("metadata", "creationTimestamp"), fieldpath.MakePathOrDie("metadata", "selfLink"), fieldpath.MakePathOrDie("metadata", "uid"),
	fieldpath.MakePathOrDie("metadata", "generation"), fieldpath.MakePathOrDie("metadata", "managedFields"), fieldpath.MakePathOrDie("metadata", "resourceVersion"),
)

// expected returns the sets that the library finds, and whether it finds any.
func expected(t *testing.T, before, after runtime.Object, without fieldpath.Filter) (taken, removed string, err error) {
	t.Helper()
	types, err := library()
	if err != nil {
		t.Fatal(err)
	}
	l, err := types.ObjectToTyped(before, typed.AllowDuplicates)
	if err != nil {
		return "", "", err
	}
	r, err := types.ObjectToTyped(after, typed.AllowDuplicates)
	if err != nil {
		return "", "", err
	}
	c, err := l.Compare(r)
	if err != nil {
		return "", "", err
	}
	c = c.FilterFields(without)
	return written(t, c.Added.Union(c.Modified).Difference(stripped)), written(t, c.Removed.Difference(stripped)), nil
}

func written(t *testing.T, s *fieldpath.Set) string {
	t.Helper()
	if s.Empty() {
		return ""
	}
	data, err := s.ToJSON()
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// TestCompare compares with the library: for every kind, upstream's example and random objects with
// random changes.
func TestCompare(t *testing.T) {
	t.Parallel()
	filters := []struct {
		name   string
		filter *ownership.Filter
		same   fieldpath.Filter
	}{
		{"all", nil, nil},
		{"main", ownership.Except([]string{"status"}), fieldpath.NewExcludeSetFilter(fieldpath.NewSet(fieldpath.MakePathOrDie("status")))},
		{"status", ownership.Except([]string{"spec"}, []string{"metadata", "labels"}), fieldpath.NewExcludeSetFilter(fieldpath.NewSet(fieldpath.MakePathOrDie("spec"), fieldpath.MakePathOrDie("metadata", "labels")))},
		{"only", ownership.Only([]string{"spec", "containers", "resources"}, []string{"spec", "ephemeralContainers"}), fieldpath.NewIncludeMatcherFilter(
			fieldpath.MakePrefixMatcherOrDie("spec", "containers", fieldpath.MatchAnyPathElement(), "resources"), fieldpath.MakePrefixMatcherOrDie("spec", "ephemeralContainers"))},
	}
	for _, k := range kinds() {
		t.Run(k.gvk.String(), func(t *testing.T) {
			t.Parallel()
			if !ownership.Covers(k.new()) {
				t.Fatal("the table does not cover the kind: go generate ./apiserver/ownership")
			}
			m := maker{rand.New(rand.NewPCG(1, uint64(len(k.gvk.String()))))} //nolint:gosec // the same each time
			compared := 0
			for round := range 60 {
				before := k.new()
				if sample := example(t, k); sample != nil && round%3 == 0 {
					before = sample
				} else if round%5 != 0 {
					m.fill(reflect.ValueOf(before).Elem(), 2+m.IntN(7))
				}
				clear(before, k.gvk)
				after := settled(t, before)
				for range 1 + m.IntN(4) {
					m.change(reflect.ValueOf(after).Elem())
				}
				clear(after, k.gvk)
				before, after = settled(t, before), settled(t, after)
				f := filters[m.IntN(len(filters))]
				taken, removed, err := expected(t, before, after, f.same)
				var got ownership.Change
				gotErr := ownership.Compare(before, after, f.filter, &got)
				if err != nil {
					continue // an item without keys
				}
				compared++
				if gotErr != nil || string(got.Taken) != taken || string(got.Removed) != removed {
					b, _ := json.Marshal(before)
					a, _ := json.Marshal(after)
					t.Fatalf("%s: %v\ntaken   %s\nwant    %s\nremoved %s\nwant    %s\nbefore %s\nafter  %s", f.name, gotErr, got.Taken, taken, got.Removed, removed, b, a)
				}
			}
			if compared < 20 {
				t.Errorf("the library refused all but %d pairs", compared)
			}
		})
	}
}

// TestTableIsCurrent makes the table anew.
func TestTableIsCurrent(t *testing.T) {
	t.Parallel()
	want, err := shapes.Table()
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile("zz_generated.shapes.go")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Error("zz_generated.shapes.go is not what the kinds of today make: go generate ./apiserver/ownership")
	}
}
