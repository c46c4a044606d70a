package all_test

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	goruntime "runtime"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/json"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"

	"github.com/periplus/periplus/apiserver/registry"
	"github.com/periplus/periplus/apiserver/registry/all"
)

// testdata returns upstream's example of a kind in JSON and protobuf. They are
// part of the module k8s.io/api, beside its code; those of other modules' kinds
// (custom resource definitions, API services) do not exist.
func testdata(t *testing.T, gvk schema.GroupVersionKind) (jsonData, protoData []byte) {
	t.Helper()
	// GetObjectKind is in core/v1/zz_generated…; any function of the module will do.
	file, _ := goruntime.FuncForPC(reflect.ValueOf((*corev1.Pod).DeepCopy).Pointer()).FileLine(0)
	if !filepath.IsAbs(file) {
		t.Skip("built with -trimpath: the module's directory is not known")
	}
	group := gvk.Group
	if group == "" {
		group = "core"
	}
	base := filepath.Join(filepath.Dir(file), "..", "..", "testdata", "HEAD", group+"."+gvk.Version+"."+gvk.Kind)
	jsonData, err := os.ReadFile(base + ".json")
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		t.Fatal(err)
	}
	protoData, err = os.ReadFile(base + ".pb")
	if err != nil {
		t.Fatal(err)
	}
	return jsonData, protoData
}

// TestRoundTrip decodes upstream's example of every kind from JSON and from the
// stored form, and encodes it to the same bytes.
func TestRoundTrip(t *testing.T) {
	t.Parallel()
	s := runtime.NewScheme()
	if err := all.AddToScheme(s); err != nil {
		t.Fatal(err)
	}
	stored := protobuf.NewSerializer(s, s)
	text := json.NewSerializerWithOptions(json.DefaultMetaFactory, s, s, json.SerializerOptions{Strict: true})
	for _, r := range all.Resources(registry.Env{}) {
		t.Run(r.GVR.String(), func(t *testing.T) {
			t.Parallel()
			jsonData, protoData := testdata(t, r.GVK())
			if jsonData == nil {
				t.Skip("upstream has no example of this kind")
			}
			fromJSON, _, err := text.Decode(jsonData, nil, r.New())
			if err != nil {
				t.Fatal(err)
			}
			fromProto, _, err := stored.Decode(protoData, nil, r.New())
			if err != nil {
				t.Fatal(err)
			}
			// Compared as JSON: embedded objects keep their white space.
			var a, b, out bytes.Buffer
			if err := errors.Join(text.Encode(fromJSON, &a), text.Encode(fromProto, &b), stored.Encode(fromProto, &out)); err != nil {
				t.Fatal(err)
			}
			if a.String() != b.String() {
				t.Error("JSON and protobuf hold different objects")
			}
			if !bytes.Equal(out.Bytes(), protoData) {
				t.Error("the stored form differs from upstream's")
			}
		})
	}
}

// TestStrategies runs every strategy on upstream's examples, in which every
// field is set: no rule may panic, change the old object or, for Default,
// depend on how often it ran.
func TestStrategies(t *testing.T) {
	t.Parallel()
	s := runtime.NewScheme()
	if err := all.AddToScheme(s); err != nil {
		t.Fatal(err)
	}
	stored := protobuf.NewSerializer(s, s)
	for _, r := range all.Resources(registry.Env{}) {
		for name, strategy := range map[string]registry.Strategy{"main": r.Strategy, "status": r.Status} {
			if strategy == nil {
				continue
			}
			t.Run(r.GVR.String()+"/"+name, func(t *testing.T) {
				t.Parallel()
				_, data := testdata(t, r.GVK())
				starts := []runtime.Object{r.New()}
				if data != nil {
					full, _, err := stored.Decode(data, nil, r.New())
					if err != nil {
						t.Fatal(err)
					}
					starts = append(starts, full)
				}
				for _, start := range starts {
					obj := start.DeepCopyObject()
					strategy.Default(obj)
					again := obj.DeepCopyObject()
					strategy.Default(again)
					if !equality.Semantic.DeepEqual(obj, again) {
						t.Error("Default does more when it runs again")
					}
					strategy.PrepareForCreate(context.Background(), obj)
					if errs := strategy.Validate(context.Background(), obj); len(errs) == 0 {
						_ = strategy.Warnings(context.Background(), obj, nil)
					}

					old, before := obj.DeepCopyObject(), obj.DeepCopyObject()
					changed := start.DeepCopyObject()
					strategy.Default(changed)
					strategy.PrepareForUpdate(context.Background(), changed, old)
					if errs := strategy.ValidateUpdate(context.Background(), changed, old); len(errs) == 0 {
						_ = strategy.Warnings(context.Background(), changed, old)
					}
					if !equality.Semantic.DeepEqual(old, before) {
						t.Error("the old object was modified")
					}
				}
			})
		}
	}
}

// TestStatusSeparation checks that the main endpoint neither sets nor changes
// the status, and /status not the spec.
func TestStatusSeparation(t *testing.T) {
	t.Parallel()
	s := runtime.NewScheme()
	if err := all.AddToScheme(s); err != nil {
		t.Fatal(err)
	}
	stored := protobuf.NewSerializer(s, s)
	part := func(obj runtime.Object, name string) any {
		return reflect.ValueOf(obj).Elem().FieldByName(name).Interface()
	}
	for _, r := range all.Resources(registry.Env{}) {
		if r.Status == nil {
			continue
		}
		t.Run(r.GVR.String(), func(t *testing.T) {
			t.Parallel()
			_, data := testdata(t, r.GVK())
			if data == nil {
				t.Skip("upstream has no example of this kind")
			}
			full, _, err := stored.Decode(data, nil, r.New())
			if err != nil {
				t.Fatal(err)
			}
			created := full.DeepCopyObject()
			r.Strategy.Default(created)
			r.Strategy.PrepareForCreate(context.Background(), created)
			if r.Kind != "Node" && equality.Semantic.DeepEqual(part(created, "Status"), part(full, "Status")) {
				t.Error("a client can set the status when it creates")
			}
			updated := full.DeepCopyObject()
			r.Strategy.Default(updated)
			r.Strategy.PrepareForUpdate(context.Background(), updated, created)
			if !equality.Semantic.DeepEqual(part(updated, "Status"), part(created, "Status")) {
				// Services lose their load balancer's status with their type.
				t.Error("a client can change the status through the main endpoint")
			}
			empty := r.New()
			r.Status.PrepareForUpdate(context.Background(), empty, created)
			if !equality.Semantic.DeepEqual(part(empty, "Spec"), part(created, "Spec")) {
				t.Error("a client can change the spec through /status")
			}
			if g := empty.(metav1.Object).GetGeneration(); g > created.(metav1.Object).GetGeneration() {
				t.Errorf("a change of the status raised the generation to %d", g)
			}
		})
	}
}
