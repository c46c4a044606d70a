package surface_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	kruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/cbor"
	"k8s.io/apimachinery/pkg/runtime/serializer/json"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"

	"github.com/periplus/periplus/apiserver/registry"
	"github.com/periplus/periplus/apiserver/registry/all"
	"github.com/periplus/periplus/apiserver/rest"
)

// exampleDir is where upstream keeps an example of every kind as it was in each of
// the latest versions and is now (HEAD): beside the code of its API module.
func exampleDir(t testing.TB) string {
	t.Helper()
	file, _ := runtime.FuncForPC(reflect.ValueOf((*corev1.Pod).DeepCopy).Pointer()).FileLine(0)
	if !filepath.IsAbs(file) {
		t.Skip("built with -trimpath: the module's directory is not known")
	}
	return filepath.Join(filepath.Dir(file), "..", "..", "testdata")
}

// kinds are all that the server has, in every version, with how they are stored.
func kinds() map[schema.GroupVersionKind]*registry.Resource {
	out := map[schema.GroupVersionKind]*registry.Resource{}
	for _, r := range all.Resources(registry.Env{}) {
		out[r.GVK()] = r
		for i := range r.Also {
			out[r.Also[i].GV.WithKind(r.Kind)] = r
		}
	}
	return out
}

// TestExamples reads every example that upstream keeps of our kinds, old and new, in
// JSON, YAML and protobuf: they hold the same, CBOR keeps it, and what is of today is
// written as upstream writes it. Every one can be read from the store.
func TestExamples(t *testing.T) {
	t.Parallel()
	s := kruntime.NewScheme()
	if err := all.AddToScheme(s); err != nil {
		t.Fatal(err)
	}
	text := json.NewSerializerWithOptions(json.DefaultMetaFactory, s, s, json.SerializerOptions{})
	yaml := json.NewSerializerWithOptions(json.DefaultMetaFactory, s, s, json.SerializerOptions{Yaml: true})
	proto, binary := protobuf.NewSerializer(s, s), cbor.NewSerializer(s, s)
	codecs := rest.NewCodecs(s)
	dir := exampleDir(t)
	versions, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for gvk, r := range kinds() {
		if r.Create != nil || r.NewList == nil {
			continue
		}
		stored := codecs.Storage(r)
		group := gvk.Group
		if group == "" {
			group = "core"
		}
		name := group + "." + gvk.Version + "." + gvk.Kind
		for _, v := range versions {
			if !v.IsDir() {
				continue
			}
			base := filepath.Join(dir, v.Name(), name)
			data, err := os.ReadFile(base + ".pb")
			if errors.Is(err, os.ErrNotExist) {
				continue // there was no such kind
			}
			if err != nil {
				t.Fatal(err)
			}
			n++
			t.Run(v.Name()+"/"+name, func(t *testing.T) {
				t.Parallel()
				decode := func(d kruntime.Decoder, data []byte) kruntime.Object {
					obj, _, err := d.Decode(data, nil, nil)
					if err != nil {
						t.Fatal(err)
					}
					return obj
				}
				encode := func(e kruntime.Encoder, obj kruntime.Object) []byte {
					var b bytes.Buffer
					if err := e.Encode(obj, &b); err != nil {
						t.Fatal(err)
					}
					return b.Bytes()
				}
				obj := decode(proto, data)
				want := encode(text, obj)
				for ext, d := range map[string]kruntime.Decoder{".json": text, ".yaml": yaml} {
					other, err := os.ReadFile(base + ext)
					if err != nil {
						t.Fatal(err)
					}
					if got := encode(text, decode(d, other)); !bytes.Equal(got, want) {
						t.Errorf("%s and protobuf hold different objects", ext)
					}
				}
				if v.Name() == "HEAD" && !bytes.Equal(encode(proto, obj), data) {
					t.Error("protobuf is not written as upstream does")
				}
				if got := encode(text, decode(binary, encode(binary, obj))); !bytes.Equal(got, want) {
					t.Errorf("CBOR does not keep the object\n got %s\nwant %s", got, want)
				}
				if gvk == r.GVK() || servedAs(r, gvk) {
					kept(t, stored, data)
				}
			})
		}
	}
	if n < 300 {
		t.Errorf("only %d examples", n)
	}
}

func servedAs(r *registry.Resource, gvk schema.GroupVersionKind) bool {
	// Events of events.k8s.io and autoscalers of v1 are other than those stored by more
	// than their names; conversions of theirs have tests of their own.
	return gvk.Group == r.GVR.Group && !strings.HasPrefix(gvk.Group, "autoscaling")
}

// kept reads what lies in the store, writes it and reads it again.
func kept(t *testing.T, stored *rest.StorageCodec, data []byte) {
	t.Helper()
	obj, err := stored.Decode(data)
	if err != nil {
		t.Fatalf("read from the store: %v", err)
	}
	again, err := stored.Encode(obj.DeepCopyObject())
	if err != nil {
		t.Fatal(err)
	}
	back, err := stored.Decode(again)
	if err != nil {
		t.Fatal(err)
	}
	if !equality.Semantic.DeepEqual(obj, back) {
		t.Errorf("the store does not keep the object\n got %+v\nwant %+v", back, obj)
	}
}
