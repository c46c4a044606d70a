package apiserver_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"

	"github.com/periplus/periplus/apiserver"
	"github.com/periplus/periplus/store/mem"
)

var definitions = apiextensionsv1.SchemeGroupVersion.WithResource("customresourcedefinitions")

const crontabs = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: crontabs.stable.example.com}
spec:
  group: stable.example.com
  scope: Namespaced
  names: {plural: crontabs, singular: crontab, kind: CronTab, shortNames: [ct], categories: [all]}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        description: A CronTab runs something now and then.
        properties:
          spec:
            type: object
            description: What to run.
            required: [cronSpec]
            properties:
              cronSpec: {type: string, pattern: '^(\d+|\*)(/\d+)?(\s+(\d+|\*)(/\d+)?){4}$'}
              image: {type: string, default: busybox}
              replicas: {type: integer, minimum: 1, maximum: 10, default: 1}
              port: {x-kubernetes-int-or-string: true, anyOf: [{type: integer}, {type: string}], nullable: true}
              loose: {type: object, x-kubernetes-preserve-unknown-fields: true}
              min: {type: integer}
              max: {type: integer, not: {enum: [13]}}
            x-kubernetes-validations:
            - {rule: "!has(self.min) || !has(self.max) || self.min <= self.max", message: min must not be above max}
            - {rule: "self.image == oldSelf.image", message: image is immutable}
          status:
            type: object
            properties:
              replicas: {type: integer}
              selector: {type: string}
    subresources:
      status: {}
      scale: {specReplicasPath: .spec.replicas, statusReplicasPath: .status.replicas, labelSelectorPath: .status.selector}
    selectableFields: [{jsonPath: .spec.image}]
    additionalPrinterColumns:
    - {name: Spec, type: string, jsonPath: .spec.cronSpec}
    - {name: Replicas, type: integer, jsonPath: .spec.replicas}
    - {name: Age, type: date, jsonPath: .metadata.creationTimestamp}
  - name: v1beta1
    served: true
    storage: false
    deprecated: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:
              cronSpec: {type: string}
              image: {type: string}
`

func fromYAML(t testing.TB, text string) *unstructured.Unstructured {
	t.Helper()
	out := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &out.Object); err != nil {
		t.Fatal(err)
	}
	// Numbers as a client decodes them.
	data, err := json.Marshal(out.Object)
	if err != nil {
		t.Fatal(err)
	}
	if err := out.UnmarshalJSON(data); err != nil {
		t.Fatal(err)
	}
	return out
}

func dynamicClient(t testing.TB, s *apiserver.Server) dynamic.Interface {
	t.Helper()
	c, err := dynamic.NewForConfig(s.ClientConfig("test", "system:masters"))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// define makes a definition and waits until it is established.
func define(t testing.TB, c dynamic.Interface, text string) *unstructured.Unstructured {
	t.Helper()
	crd, err := c.Resource(definitions).Create(context.Background(), fromYAML(t, text), metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return awaitCondition(t, c, crd, "Established", "True")
}

func awaitCondition(t testing.TB, c dynamic.Interface, crd *unstructured.Unstructured, kind, status string) *unstructured.Unstructured {
	t.Helper()
	w, err := c.Resource(definitions).Watch(context.Background(), metav1.ListOptions{FieldSelector: "metadata.name=" + crd.GetName()})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	for e := range w.ResultChan() {
		if e.Type == watch.Deleted {
			t.Fatalf("%s was deleted", crd.GetName())
		}
		got := e.Object.(*unstructured.Unstructured)
		conditions, _, _ := unstructured.NestedSlice(got.Object, "status", "conditions")
		for _, c := range conditions {
			if m := c.(map[string]any); m["type"] == kind && m["status"] == status {
				return got
			}
		}
	}
	t.Fatalf("%s is never %s=%s", crd.GetName(), kind, status)
	return nil
}

func cronTab(t testing.TB, name, spec string) *unstructured.Unstructured {
	return fromYAML(t, "apiVersion: stable.example.com/v1\nkind: CronTab\nmetadata: {name: "+name+"}\nspec: "+spec)
}

var cronTabs = schema.GroupVersionResource{Group: "stable.example.com", Version: "v1", Resource: "crontabs"}

func TestCustomResource(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	s, _ := start(t)
	c := dynamicClient(t, s)
	crd := define(t, c, crontabs)
	tabs := c.Resource(cronTabs).Namespace("default")
	w, err := tabs.Watch(ctx, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	made, err := tabs.Create(ctx, cronTab(t, "a", `{cronSpec: "* * * * */5", bogus: 1, port: http, loose: {x: {z: [1, "2"]}}}`), metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	field := func(o *unstructured.Unstructured, path ...string) any {
		v, _, _ := unstructured.NestedFieldNoCopy(o.Object, path...)
		return v
	}
	if field(made, "spec", "bogus") != nil || field(made, "spec", "image") != "busybox" || field(made, "spec", "replicas") != int64(1) || field(made, "spec", "loose", "x", "z") == nil || made.GetGeneration() != 1 {
		t.Fatalf("pruned and defaulted: %v", made.Object)
	}
	if e := <-w.ResultChan(); e.Type != watch.Added || e.Object.(*unstructured.Unstructured).GetResourceVersion() != made.GetResourceVersion() {
		t.Errorf("watch: %v %v", e.Type, e.Object)
	}
	for _, test := range []struct{ name, spec, want string }{
		{"pattern", `{cronSpec: "x"}`, `CronTab.stable.example.com "pattern" is invalid: spec.cronSpec: Invalid value: "x": spec.cronSpec in body should match`},
		{"required", `{}`, `CronTab.stable.example.com "required" is invalid: [spec.cronSpec: Required value, <nil>: Invalid value: null: some validation rules were not checked because the object was invalid; correct the existing errors to complete validation]`},
		{"range", `{cronSpec: "* * * * *", replicas: 11}`, `spec.replicas: Invalid value: 11: spec.replicas in body should be less than or equal to 10`},
		{"type", `{cronSpec: "* * * * *", replicas: many}`, `spec.replicas: Invalid value: "string": spec.replicas in body must be of type integer: "string"`},
		{"rule", `{cronSpec: "* * * * *", min: 2, max: 1}`, `CronTab.stable.example.com "rule" is invalid: spec: Invalid value: min must not be above max`},
		{"strict", `{cronSpec: "* * * * *", bogus: 1}`, `strict decoding error: unknown field "spec.bogus"`},
	} {
		_, err := tabs.Create(ctx, cronTab(t, test.name, test.spec), metav1.CreateOptions{FieldValidation: "Strict"})
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v\nwant %s", test.name, err, test.want)
		}
	}
	// The status is written by its own endpoint only, and does not raise the generation.
	_ = unstructured.SetNestedField(made.Object, int64(7), "status", "replicas")
	_ = unstructured.SetNestedField(made.Object, int64(3), "spec", "replicas")
	updated, err := tabs.Update(ctx, made, metav1.UpdateOptions{})
	if err != nil || updated.GetGeneration() != 2 || field(updated, "status") != nil {
		t.Fatalf("update: %v, %v", updated, err)
	}
	_ = unstructured.SetNestedField(updated.Object, int64(7), "status", "replicas")
	_ = unstructured.SetNestedField(updated.Object, int64(4), "spec", "replicas")
	updated, err = tabs.UpdateStatus(ctx, updated, metav1.UpdateOptions{})
	if err != nil || updated.GetGeneration() != 2 || field(updated, "status", "replicas") != int64(7) || field(updated, "spec", "replicas") != int64(3) {
		t.Fatalf("status: %v, %v", updated, err)
	}
	_ = unstructured.SetNestedField(updated.Object, "other", "spec", "image")
	if _, err := tabs.Update(ctx, updated, metav1.UpdateOptions{}); err == nil || !strings.Contains(err.Error(), "image is immutable") {
		t.Errorf("transition rule: %v", err)
	}
	scaled, err := tabs.Patch(ctx, "a", types.MergePatchType, []byte(`{"spec":{"replicas":5}}`), metav1.PatchOptions{}, "scale")
	if err != nil || field(scaled, "spec", "replicas") != int64(5) || field(scaled, "status", "replicas") != int64(7) || scaled.GetKind() != "Scale" {
		t.Errorf("scale: %v, %v", scaled, err)
	}
	if _, err := tabs.Patch(ctx, "a", types.StrategicMergePatchType, []byte(`{}`), metav1.PatchOptions{}); !apierrors.IsUnsupportedMediaType(err) {
		t.Errorf("strategic merge patch: %v", err)
	}
	// Another version: the same object under another name and schema.
	old, err := c.Resource(schema.GroupVersionResource{Group: "stable.example.com", Version: "v1beta1", Resource: "crontabs"}).Namespace("default").Get(ctx, "a", metav1.GetOptions{})
	if err != nil || old.GetAPIVersion() != "stable.example.com/v1beta1" || field(old, "spec", "replicas") != nil || field(old, "spec", "image") != "busybox" {
		t.Errorf("v1beta1: %v, %v", old, err)
	}
	list, err := tabs.List(ctx, metav1.ListOptions{FieldSelector: "spec.image=busybox"})
	if err != nil || len(list.Items) != 1 || list.GetKind() != "CronTabList" || list.Items[0].GetKind() != "CronTab" {
		t.Errorf("list: %v, %v", list, err)
	}
	// Deleting the definition deletes the objects; one that is held keeps it waiting.
	if _, err := tabs.Patch(ctx, "a", types.MergePatchType, []byte(`{"metadata":{"finalizers":["example.com/hold"]}}`), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := c.Resource(definitions).Delete(ctx, crd.GetName(), metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	awaitCondition(t, c, crd, "Terminating", "True")
	if _, err := tabs.Create(ctx, cronTab(t, "late", `{cronSpec: "* * * * *"}`), metav1.CreateOptions{}); err == nil || !strings.Contains(err.Error(), "create not allowed while custom resource definition is terminating") {
		t.Errorf("create while terminating: %v", err)
	}
	gone, err := c.Resource(definitions).Watch(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + crd.GetName()})
	if err != nil {
		t.Fatal(err)
	}
	defer gone.Stop()
	if _, err := tabs.Patch(ctx, "a", types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	for e := range gone.ResultChan() {
		if e.Type == watch.Deleted {
			break
		}
	}
	var last watch.EventType
	for e := range w.ResultChan() { // ends with the resource
		last = e.Type
	}
	if last != watch.Deleted {
		t.Errorf("the last event is %s", last)
	}
	if _, err := tabs.List(ctx, metav1.ListOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("after the definition: %v", err)
	}
}

// TestDefinitionChanges: what is served follows the definition; watches go on from where they are.
func TestDefinitionChanges(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	s, _ := start(t)
	c := dynamicClient(t, s)
	crd := define(t, c, crontabs)
	tabs := c.Resource(cronTabs).Namespace("default")
	made, err := tabs.Create(ctx, cronTab(t, "a", `{cronSpec: "* * * * *"}`), metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	w, err := tabs.Watch(ctx, metav1.ListOptions{ResourceVersion: made.GetResourceVersion()})
	if err != nil {
		t.Fatal(err)
	}
	versions, _, _ := unstructured.NestedSlice(crd.Object, "spec", "versions")
	_ = unstructured.SetNestedField(versions[0].(map[string]any), "fresh", "schema", "openAPIV3Schema", "properties", "spec", "properties", "added", "default")
	_ = unstructured.SetNestedField(versions[0].(map[string]any), "string", "schema", "openAPIV3Schema", "properties", "spec", "properties", "added", "type")
	_ = unstructured.SetNestedSlice(crd.Object, versions, "spec", "versions")
	if _, err := c.Resource(definitions).Update(ctx, crd, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	for range w.ResultChan() { // the old schema's watches end
	}
	got, err := tabs.Get(ctx, "a", metav1.GetOptions{})
	if v, _, _ := unstructured.NestedString(got.Object, "spec", "added"); err != nil || v != "fresh" || got.GetResourceVersion() != made.GetResourceVersion() {
		t.Errorf("defaults of stored objects: %v, %v", got.Object, err)
	}
	w, err = tabs.Watch(ctx, metav1.ListOptions{ResourceVersion: made.GetResourceVersion()})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	if err := tabs.Delete(ctx, "a", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if e := <-w.ResultChan(); e.Type != watch.Deleted {
		t.Errorf("%v", e)
	}
	// Names that are taken are refused, and tell so.
	twin := strings.NewReplacer("crontabs", "crontwins", "singular: crontab,", "singular: crontwin,").Replace(crontabs)
	refused, err := c.Resource(definitions).Create(ctx, fromYAML(t, twin), metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	refused = awaitCondition(t, c, refused, "NamesAccepted", "False")
	text, _ := json.Marshal(refused.Object["status"])
	if !strings.Contains(string(text), `"reason":"ListKindConflict"`) || !strings.Contains(string(text), `"CronTabList\" is already in use`) {
		t.Errorf("%s", text)
	}
}

// TestCustomResourcesAfterARestart are served before the server says that it is ready,
// and in the versions that are left.
func TestCustomResourcesAfterARestart(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	shared := mem.New()
	first, _ := startWith(t, func(c *apiserver.Config) { c.Store = shared })
	c := dynamicClient(t, first)
	// The stored version is not served.
	define(t, c, strings.Replace(crontabs, "    served: true\n    storage: true", "    served: false\n    storage: true", 1))
	old := cronTabs.GroupResource().WithVersion("v1beta1")
	in := cronTab(t, "a", `{cronSpec: "* * * * *", image: x}`)
	in.SetAPIVersion("stable.example.com/v1beta1")
	if _, err := c.Resource(old).Namespace("default").Create(ctx, in, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	second, typed := startWith(t, func(c *apiserver.Config) { c.Store = shared })
	got, err := dynamicClient(t, second).Resource(old).Namespace("default").Get(ctx, "a", metav1.GetOptions{})
	if err != nil || got.GetAPIVersion() != "stable.example.com/v1beta1" {
		t.Errorf("%v, %v", got, err)
	}
	if _, err := dynamicClient(t, second).Resource(cronTabs).Namespace("default").Get(ctx, "a", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("in the version that is not served: %v", err)
	}
	if _, err := typed.Discovery().ServerResourcesForGroupVersion("stable.example.com/v1"); !apierrors.IsNotFound(err) {
		t.Errorf("discovery of the version that is not served: %v", err)
	}
	entry, err := shared.Get(ctx, "/registry/stable.example.com/crontabs/default/a")
	if err != nil || !strings.HasPrefix(string(entry.Value), `{"kind":"CronTab","apiVersion":"stable.example.com/v1","metadata":{`) {
		t.Errorf("stored: %s, %v", entry.Value, err)
	}
}

// TestDefinitionValidation refuses what upstream refuses.
func TestDefinitionValidation(t *testing.T) {
	t.Parallel()
	s, _ := start(t)
	c := dynamicClient(t, s)
	for _, test := range []struct{ name, old, new, want string }{
		{"name", "name: crontabs.stable", "name: crons.stable", `metadata.name: Invalid value: "crons.stable.example.com": must be spec.names.plural+"."+spec.group`},
		{"rule", "self.min <= self.max", "self.min <= self.mex", `undefined field 'mex'`},
		{"structural", "min: {type: integer}", "min: {}", `spec.versions[0].schema.openAPIV3Schema.properties[spec].properties[min].type: Required value: must not be empty for specified object fields`},
		{"group", "group: stable.example.com", "group: x.k8s.io", `metadata.annotations[api-approved.kubernetes.io]: Required value`},
	} {
		_, err := c.Resource(definitions).Create(t.Context(), fromYAML(t, strings.Replace(crontabs, test.old, test.new, 1)), metav1.CreateOptions{})
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v\nwant %s", test.name, err, test.want)
		}
	}
}

// TestDiscoveryOfCustomResources: documents of all forms know them at once.
func TestDiscoveryOfCustomResources(t *testing.T) {
	t.Parallel()
	s, typed := start(t)
	define(t, dynamicClient(t, s), crontabs)
	_, lists, err := typed.Discovery().ServerGroupsAndResources()
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]string{}
	for _, l := range lists {
		for _, r := range l.APIResources {
			names[l.GroupVersion+"/"+r.Name] = r.Kind + " " + strings.Join(r.ShortNames, ",") + " " + strings.Join(r.Categories, ",")
		}
	}
	for name, want := range map[string]string{
		"stable.example.com/v1/crontabs": "CronTab ct all", "stable.example.com/v1/crontabs/status": "CronTab  ", "stable.example.com/v1/crontabs/scale": "Scale  ",
		"stable.example.com/v1beta1/crontabs": "CronTab ct all", "stable.example.com/v1beta1/crontabs/status": "",
	} {
		if names[name] != want {
			t.Errorf("%s: %q, want %q", name, names[name], want)
		}
	}
	body, err := typed.RESTClient().Get().AbsPath("/openapi/v3/apis/stable.example.com/v1").Do(t.Context()).Raw()
	if err != nil || !strings.Contains(string(body), "A CronTab runs something now and then.") || !strings.Contains(string(body), `"x-kubernetes-int-or-string":true`) {
		t.Errorf("%v %.300s", err, body)
	}
	if _, err := typed.RESTClient().Get().AbsPath("/openapi/v3/apis/stable.example.com/v1").SetHeader("Accept", "application/com.github.proto-openapi.spec.v3@v1.0+protobuf").Do(t.Context()).Raw(); err != nil {
		t.Errorf("protobuf of v3: %v", err)
	}
	if document, err := typed.Discovery().OpenAPISchema(); err != nil || document.GetDefinitions() == nil { // protobuf of v2
		t.Errorf("v2 for kubectl: %v", err)
	}
	if body, err = typed.RESTClient().Get().AbsPath("/openapi/v2").Do(t.Context()).Raw(); err != nil || !strings.Contains(string(body), "com.example.stable.v1.CronTab") {
		t.Errorf("v2: %v", err)
	}
	table, err := typed.RESTClient().Get().AbsPath("/apis/stable.example.com/v1/crontabs").SetHeader("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io").Do(t.Context()).Raw()
	if err != nil || !strings.Contains(string(table), `"name":"Spec"`) {
		t.Errorf("%v %s", err, table)
	}
}
