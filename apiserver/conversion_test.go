package apiserver_test

import (
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"
)

// A strict converter refuses what a converter need not expect: objects that are of
// the wanted version already, and several versions in one request.
type strictConverter struct {
	*httptest.Server
	mu      sync.Mutex
	batches []int  // sizes of the requests
	wrong   string // what was not to be expected
}

func startConverter(t *testing.T) *strictConverter {
	t.Helper()
	c := &strictConverter{}
	c.Server = httptest.NewTLSServer(http.HandlerFunc(c.convert))
	t.Cleanup(c.Close)
	return c
}

func (c *strictConverter) convert(w http.ResponseWriter, r *http.Request) {
	in := apiextensionsv1.ConversionReview{}
	if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.batches = append(c.batches, len(in.Request.Objects))
	out := &apiextensionsv1.ConversionResponse{UID: in.Request.UID, Result: metav1.Status{Status: metav1.StatusSuccess}}
	first := ""
	for _, raw := range in.Request.Objects {
		o := &unstructured.Unstructured{}
		_ = o.UnmarshalJSON(raw.Raw)
		switch {
		case o.GetAPIVersion() == in.Request.DesiredAPIVersion:
			c.wrong = "asked to convert from a version to itself"
		case first != "" && first != o.GetAPIVersion():
			c.wrong = "asked to convert from several versions at once"
		}
		first = o.GetAPIVersion()
		from, to := "a", "b"
		if in.Request.DesiredAPIVersion == "sea.example.com/v1" {
			from, to = "b", "a"
		}
		v, found, _ := unstructured.NestedString(o.Object, from)
		if !found {
			c.wrong = fmt.Sprintf("an object of %s has no field %s: %v", o.GetAPIVersion(), from, o.Object)
		}
		delete(o.Object, from)
		o.Object[to] = v
		o.SetAPIVersion(in.Request.DesiredAPIVersion)
		data, _ := o.MarshalJSON()
		out.ConvertedObjects = append(out.ConvertedObjects, runtime.RawExtension{Raw: data})
	}
	in.Response, in.Request = out, nil
	_ = json.NewEncoder(w).Encode(in)
}

// asked returns the sizes of the requests since the last call.
func (c *strictConverter) asked(t *testing.T) []int {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.wrong != "" {
		t.Error(c.wrong)
		c.wrong = ""
	}
	out := c.batches
	c.batches = nil
	return out
}

// TestMixedVersions: objects stay in the store in the version in which they were
// written. Each is converted from its own, those of one version together.
func TestMixedVersions(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	s, _ := start(t)
	d := dynamicClient(t, s)
	converter := startConverter(t)
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: converter.Certificate().Raw})
	define(t, d, fmt.Sprintf(`
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: buoys.sea.example.com}
spec:
  group: sea.example.com
  scope: Cluster
  names: {plural: buoys, singular: buoy, kind: Buoy}
  conversion: {strategy: Webhook, webhook: {conversionReviewVersions: [v1], clientConfig: {url: %q, caBundle: %s}}}
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, properties: {a: {type: string}}}}}
  - {name: v2, served: true, storage: false, schema: {openAPIV3Schema: {type: object, properties: {b: {type: string}}}}}
`, converter.URL, base64.StdEncoding.EncodeToString(ca)))
	v1 := d.Resource(schema.GroupVersionResource{Group: "sea.example.com", Version: "v1", Resource: "buoys"})
	v2 := d.Resource(schema.GroupVersionResource{Group: "sea.example.com", Version: "v2", Resource: "buoys"})
	old, err := v1.Create(ctx, fromYAML(t, "apiVersion: sea.example.com/v1\nkind: Buoy\nmetadata: {name: old}\na: x"), metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"old2", "old3"} {
		if _, err := v1.Create(ctx, fromYAML(t, "apiVersion: sea.example.com/v1\nkind: Buoy\nmetadata: {name: "+name+"}\na: x"), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	before, err := v1.Watch(ctx, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	turn := []byte(`{"spec":{"versions":[{"name":"v1","served":true,"storage":false,"schema":{"openAPIV3Schema":{"type":"object","properties":{"a":{"type":"string"}}}}},{"name":"v2","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object","properties":{"b":{"type":"string"}}}}}]}}`)
	if _, err := d.Resource(definitions).Patch(ctx, "buoys.sea.example.com", types.MergePatchType, turn, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	for range before.ResultChan() { // ends when the definition is served anew
	}
	converter.asked(t)
	if _, err := v2.Create(ctx, fromYAML(t, "apiVersion: sea.example.com/v2\nkind: Buoy\nmetadata: {name: new}\nb: x"), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if n := converter.asked(t); len(n) > 0 {
		t.Errorf("asked for %v objects to create one of the stored version", n)
	}

	shows := func(what string, list *unstructured.UnstructuredList, err error, version, field string) {
		t.Helper()
		if err != nil || len(list.Items) != 4 {
			t.Fatalf("%s: %v, %v", what, list, err)
		}
		for i := range list.Items {
			o := &list.Items[i]
			if v, _, _ := unstructured.NestedString(o.Object, field); o.GetAPIVersion() != "sea.example.com/"+version || v != "x" {
				t.Errorf("%s: %v", what, o.Object)
			}
		}
	}
	list, err := v1.List(ctx, metav1.ListOptions{})
	shows("v1", list, err, "v1", "a")
	if n := converter.asked(t); len(n) != 1 || n[0] != 1 {
		t.Errorf("asked for %v objects, want the new one", n)
	}
	list, err = v2.List(ctx, metav1.ListOptions{})
	shows("v2", list, err, "v2", "b")
	if n := converter.asked(t); len(n) != 1 || n[0] != 3 {
		t.Errorf("asked for %v objects, want three at once", n)
	}
	watching, err := v2.Watch(ctx, metav1.ListOptions{ResourceVersion: old.GetResourceVersion()})
	if err != nil {
		t.Fatal(err)
	}
	defer watching.Stop()
	for range 3 { // those after the first
		e := <-watching.ResultChan()
		o, ok := e.Object.(*unstructured.Unstructured)
		if v, _, _ := unstructured.NestedString(o.Object, "b"); !ok || o.GetAPIVersion() != "sea.example.com/v2" || v != "x" {
			t.Errorf("watch: %s %v", e.Type, e.Object)
		}
	}

	// What is written anew is stored in the new version, whoever writes.
	if _, err := v1.Patch(ctx, "old", types.MergePatchType, []byte(`{"metadata":{"labels":{"k":"v"}}}`), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	err = retry.RetryOnConflict(retry.DefaultRetry, func() error {
		o, err := v2.Get(ctx, "old2", metav1.GetOptions{})
		if err != nil {
			return err
		}
		_, err = v2.Update(ctx, o, metav1.UpdateOptions{}) // nothing but the version
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	converter.asked(t)
	list, err = v2.List(ctx, metav1.ListOptions{})
	shows("v2 afterwards", list, err, "v2", "b")
	if n := converter.asked(t); len(n) != 0 {
		t.Errorf("asked for %v objects, want none: two are stored anew, one is remembered", n)
	}
	if err := v1.Delete(ctx, "old3", metav1.DeleteOptions{}); err != nil {
		t.Error(err)
	}
}
