package crds_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"github.com/periplus/periplus/apitest"
)

var (
	definitions = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
	policies    = schema.GroupVersionResource{Group: "admissionregistration.k8s.io", Version: "v1", Resource: "validatingadmissionpolicies"}
	bindings    = schema.GroupVersionResource{Group: "admissionregistration.k8s.io", Version: "v1", Resource: "validatingadmissionpolicybindings"}
)

func TestProjects(t *testing.T) {
	t.Parallel()
	for _, p := range projects {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			dir := fetch(t, p.module)
			env := &apitest.Environment{}
			config, err := env.Start()
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				if err := env.Stop(); err != nil {
					t.Error(err)
				}
			})
			w := &world{core: kubernetes.NewForConfigOrDie(config), any: dynamic.NewForConfigOrDie(config), discovery: discovery.NewDiscoveryClientForConfigOrDie(config)}
			w.install(t, read(t, dir+"/"+p.definitions))
			w.good(t, p.read(t, dir, p.good))
			w.bad(t, p.read(t, dir, p.bad))
			w.explain(t, p.explain)
		})
	}
}

// A world is one server with a project's definitions.
type world struct {
	core      kubernetes.Interface
	any       dynamic.Interface
	discovery discovery.DiscoveryInterface
	served    map[schema.GroupVersionKind]metav1.APIResource
}

// install makes the definitions, and what protects them, and waits until all are served.
func (w *world) install(t *testing.T, list []document) {
	t.Helper()
	ctx := t.Context()
	for _, d := range list {
		where := definitions
		switch d.GetKind() {
		case "ValidatingAdmissionPolicy":
			where = policies
		case "ValidatingAdmissionPolicyBinding":
			where = bindings
		}
		made, err := w.any.Resource(where).Create(ctx, d.Unstructured, metav1.CreateOptions{FieldValidation: "Strict"})
		if err != nil {
			t.Fatalf("%s: %v", d.file, err)
		}
		if where == definitions {
			w.established(ctx, t, made)
		}
	}
	w.served = map[schema.GroupVersionKind]metav1.APIResource{}
	_, lists, err := w.discovery.ServerGroupsAndResources()
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range lists {
		gv, err := schema.ParseGroupVersion(l.GroupVersion)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range l.APIResources {
			if !strings.Contains(r.Name, "/") {
				w.served[gv.WithKind(r.Kind)] = r
			}
		}
	}
}

func (w *world) established(ctx context.Context, t *testing.T, crd *unstructured.Unstructured) {
	t.Helper()
	conditions := func(u *unstructured.Unstructured) string {
		list, _, _ := unstructured.NestedSlice(u.Object, "status", "conditions")
		text := ""
		for _, c := range list {
			m := c.(map[string]any)
			text += fmt.Sprintf("%v=%v (%v) ", m["type"], m["status"], m["message"])
		}
		return text
	}
	watching, err := w.any.Resource(definitions).Watch(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + crd.GetName()})
	if err != nil {
		t.Fatal(err)
	}
	defer watching.Stop()
	for ev := range watching.ResultChan() {
		switch got := conditions(ev.Object.(*unstructured.Unstructured)); {
		case strings.Contains(got, "NamesAccepted=False"), strings.Contains(got, "NonStructuralSchema=True"):
			t.Fatalf("%s: %s", crd.GetName(), got)
		case strings.Contains(got, "Established=True"):
			return
		}
	}
}

// to returns the way to an object's resource; nil for kinds that are not a project's.
func (w *world) to(t *testing.T, d *document) dynamic.ResourceInterface {
	t.Helper()
	gvk := d.GroupVersionKind()
	r, ok := w.served[gvk]
	if !ok || !strings.Contains(gvk.Group, ".") || strings.HasSuffix(gvk.Group, ".k8s.io") && gvk.Group != "gateway.networking.k8s.io" {
		return nil
	}
	gvr := gvk.GroupVersion().WithResource(r.Name)
	if !r.Namespaced {
		return w.any.Resource(gvr)
	}
	namespace := d.GetNamespace()
	if namespace == "" {
		namespace = "default"
	}
	_, err := w.core.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatal(err)
	}
	return w.any.Resource(gvr).Namespace(namespace)
}

// good objects are accepted as they are, and again when a label is put on them.
func (w *world) good(t *testing.T, list []document) {
	t.Helper()
	count := 0
	for _, d := range list {
		c := w.to(t, &d)
		if c == nil {
			continue
		}
		_, err := c.Create(t.Context(), d.Unstructured, metav1.CreateOptions{FieldValidation: "Strict"})
		if apierrors.IsAlreadyExists(err) {
			continue // several examples have the same name
		}
		if err != nil {
			t.Errorf("%s: %s %s: %v", d.file, d.GetKind(), d.GetName(), err)
			continue
		}
		if _, err := c.Patch(t.Context(), d.GetName(), types.MergePatchType, []byte(`{"metadata":{"labels":{"seen":"yes"}}}`), metav1.PatchOptions{}); err != nil {
			t.Errorf("%s: %s %s, changed: %v", d.file, d.GetKind(), d.GetName(), err)
		}
		applied, err := json.Marshal(d.Object)
		if err != nil {
			t.Fatal(err)
		}
		force := true
		if _, err := c.Patch(t.Context(), d.GetName(), types.ApplyPatchType, applied, metav1.PatchOptions{FieldManager: "crds", Force: &force}); err != nil {
			t.Errorf("%s: %s %s, applied: %v", d.file, d.GetKind(), d.GetName(), err)
		}
		count++
	}
	if count == 0 {
		t.Error("there are no examples")
	}
	t.Logf("%d good examples", count)
}

// bad objects are refused as invalid; where a file says why, the answer does so, too.
func (w *world) bad(t *testing.T, list []document) {
	t.Helper()
	count := 0
	for _, d := range list {
		c := w.to(t, &d)
		if c == nil {
			continue
		}
		count++
		want := d.GetAnnotations()["want"]
		_, err := c.Create(t.Context(), d.Unstructured, metav1.CreateOptions{})
		if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %s %s is not refused as it should be (%q): %v", d.file, d.GetKind(), d.GetName(), want, err)
		}
		if os.Getenv("CRDS_SHOW") != "" {
			t.Logf("%s: %v", d.file, err)
		}
	}
	if count == 0 {
		t.Error("there are no examples of what is wrong")
	}
	t.Logf("%d bad examples", count)
}

// explain follows paths of fields through what the server publishes as OpenAPI v3.
func (w *world) explain(t *testing.T, paths map[string]string) {
	t.Helper()
	for path, version := range paths {
		data, err := w.core.Discovery().RESTClient().Get().AbsPath("/openapi/v3/apis/" + version).Do(t.Context()).Raw()
		if err != nil {
			t.Errorf("OpenAPI of %s: %v", version, err)
			continue
		}
		var doc struct {
			Components struct{ Schemas map[string]*node }
		}
		if err := json.Unmarshal(data, &doc); err != nil {
			t.Fatal(err)
		}
		gv, _ := schema.ParseGroupVersion(version)
		fields := strings.Split(path, ".")
		var at *node
		for _, s := range doc.Components.Schemas {
			for _, k := range s.Kinds {
				if r, ok := w.served[gv.WithKind(k.Kind)]; ok && k.Group == gv.Group && k.Version == gv.Version && r.Name == fields[0] {
					at = s
				}
			}
		}
		for _, f := range fields[1:] {
			at = at.field(f)
		}
		if at == nil || at.Description == "" {
			t.Errorf("%s of %s is not explained", path, version)
		}
	}
}

// A node is a part of an OpenAPI document.
type node struct {
	Description string           `json:"description"`
	Properties  map[string]*node `json:"properties"`
	Items       *node            `json:"items"`
	Kinds       []struct {
		Group, Version, Kind string
	} `json:"x-kubernetes-group-version-kind"`
}

func (n *node) field(name string) *node {
	if n == nil {
		return nil
	}
	if n.Items != nil {
		n = n.Items
	}
	return n.Properties[name]
}
