package all_test

import (
	"context"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/kubernetes/scheme"
	metadatafake "k8s.io/client-go/metadata/fake"
	"k8s.io/client-go/rest"

	"github.com/periplus/periplus/controllers"
	"github.com/periplus/periplus/controllers/all"
)

// unwatched are reads that are requests, not informers.
var unwatched = map[string][]string{
	"legacy-serviceaccount-token-cleaner-controller": {"configmaps"},
	"horizontal-pod-autoscaler-controller":           {"pods"}, // of metrics.k8s.io
	"storage-version-migrator-controller":            {"customresourcedefinitions"},
}

// TestReads: a controller declares the kinds that it watches, and watches those that it declares.
func TestReads(t *testing.T) {
	t.Parallel()
	for _, c := range all.Controllers() {
		t.Run(c.Name, func(t *testing.T) {
			t.Parallel()
			watched, configured := watches(t, c)
			if !configured {
				return // it has no more than a certificate to be asked for
			}
			for _, r := range watched {
				if !slices.Contains(c.Reads, r) {
					t.Errorf("watches %s and does not declare it", r)
				}
			}
			for _, r := range c.Reads {
				if !slices.Contains(watched, r) && !strings.HasPrefix(r.Resource, "*") && !slices.Contains(unwatched[c.Name], r.Resource) {
					t.Errorf("declares %s and does not watch it", r)
				}
			}
		})
	}
}

// watches returns the resources of the informers that a controller uses.
func watches(t *testing.T, c controllers.Controller) (found []schema.GroupVersionResource, configured bool) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	client := fake.NewClientset()
	shared := &factory{SharedInformerFactory: informers.NewSharedInformerFactory(client, 0), end: cancel}
	defer shared.Shutdown()
	defer cancel()
	build := c.New
	c.New = func(s *controllers.Setup) (controllers.Reconciler, error) {
		r, err := build(s)
		configured = err == nil
		return r, err
	}
	kinds := kruntime.NewScheme()
	if err := metav1.AddMetaToScheme(kinds); err != nil {
		t.Fatal(err)
	}
	env := &controllers.Env{
		Client: client, Informers: shared, Metadata: metadatafake.NewSimpleMetadataClient(kinds),
		ConfigFor: func(string) *rest.Config { return &rest.Config{Host: "https://127.0.0.1:1"} },
		Options: controllers.Options{
			ClusterCIDRs: []string{"10.42.0.0/16"}, RootCA: []byte("x"), LegacyToken: func(*corev1.ServiceAccount, string) (string, error) { return "", nil },
		},
	}
	if err := controllers.Run(ctx, env, []controllers.Controller{c}); err != nil && ctx.Err() == nil {
		t.Fatal(err)
	}
	for _, typ := range shared.types {
		obj, ok := reflect.New(typ.Elem()).Interface().(kruntime.Object)
		if !ok {
			t.Fatalf("%s is no object", typ)
		}
		kind, _, err := scheme.Scheme.ObjectKinds(obj)
		if err != nil {
			t.Fatal(err)
		}
		r, _ := meta.UnsafeGuessKindToResource(kind[0])
		found = append(found, r)
	}
	return found, configured
}

// A factory notes which informers are started, and ends the run.
type factory struct {
	informers.SharedInformerFactory
	types []reflect.Type
	end   func()
}

func (f *factory) StartWithContext(ctx context.Context) {
	f.SharedInformerFactory.StartWithContext(ctx)
	for typ := range f.WaitForCacheSync(ctx.Done()) {
		f.types = append(f.types, typ)
	}
	f.end()
}

var write = regexp.MustCompile(`\.[A-Z]\w+V\d\w*\(\)\.(\w+)\([^()]*\)\.(?:Create|Update|UpdateStatus|UpdateApproval|Patch|Delete|Apply|ApplyStatus)\(`)

// TestWrites: what a controller's code writes it declares.
func TestWrites(t *testing.T) {
	t.Parallel()
	for _, c := range all.Controllers() {
		name := runtime.FuncForPC(reflect.ValueOf(c.New).Pointer()).Name()
		dir := name[strings.LastIndex(name, "/")+1:]
		dir, _, _ = strings.Cut(dir, ".")
		files, err := filepath.Glob("../" + dir + "/*.go")
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: no code in %s: %v", c.Name, dir, err)
		}
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			code, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range write.FindAllSubmatch(code, -1) {
				if r := strings.ToLower(string(m[1])); !slices.ContainsFunc(c.Writes, func(d schema.GroupVersionResource) bool { return d.Resource == r }) {
					t.Errorf("%s writes %s in %s and does not declare it", c.Name, r, file)
				}
			}
		}
	}
}
