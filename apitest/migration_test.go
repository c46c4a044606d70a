package apitest_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	storagemigrationv1 "k8s.io/api/storagemigration/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset/typed/apiextensions/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"github.com/periplus/periplus/apitest"
)

// TestStorageVersionMigration: objects are stored in the new version, those that are
// already are left alone, and the definition forgets the old one.
func TestStorageVersionMigration(t *testing.T) {
	t.Parallel()
	ctx, yes := t.Context(), true
	version := func(name string, stored bool) apiextensionsv1.CustomResourceDefinitionVersion {
		return apiextensionsv1.CustomResourceDefinitionVersion{Name: name, Served: true, Storage: stored, Schema: &apiextensionsv1.CustomResourceValidation{
			OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: &yes}}}
	}
	e := &apitest.Environment{Controllers: []string{"storage-version-migrator-controller"}, CRDs: []*apiextensionsv1.CustomResourceDefinition{{
		ObjectMeta: metav1.ObjectMeta{Name: "ships.example.com"}, Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: "example.com", Scope: apiextensionsv1.NamespaceScoped, Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: "ships", Singular: "ship", Kind: "Ship", ListKind: "ShipList"},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{version("v1", true), version("v2", false)},
		},
	}}}
	config, err := e.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Stop(); err != nil {
			t.Error(err)
		}
	})
	c, dyn, definitions := kubernetes.NewForConfigOrDie(config), dynamic.NewForConfigOrDie(config), apiextensions.NewForConfigOrDie(config).CustomResourceDefinitions()
	ships := dyn.Resource(schema.GroupVersionResource{Group: "example.com", Version: "v2", Resource: "ships"}).Namespace("default")
	launch := func(name string) string {
		t.Helper()
		s, err := ships.Create(ctx, &unstructured.Unstructured{Object: map[string]any{"apiVersion": "example.com/v2", "kind": "Ship", "metadata": map[string]any{"name": name}}}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return s.GetResourceVersion()
	}
	before := map[string]string{}
	for i := range 3 {
		name := fmt.Sprintf("old-%d", i)
		before[name] = launch(name)
	}
	crd, err := definitions.Get(ctx, "ships.example.com", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	crd.Spec.Versions[0].Storage, crd.Spec.Versions[1].Storage = false, true
	if crd, err = definitions.Update(ctx, crd, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	awaitDefinition(ctx, t, definitions, crd, func(crd *apiextensionsv1.CustomResourceDefinition) bool {
		return slices.Equal(crd.Status.StoredVersions, []string{"v1", "v2"})
	})
	before["new"] = launch("new")

	migrate := func(name, resource string) *storagemigrationv1.StorageVersionMigration {
		t.Helper()
		m, err := c.StoragemigrationV1().StorageVersionMigrations().Create(ctx, &storagemigrationv1.StorageVersionMigration{
			ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: storagemigrationv1.StorageVersionMigrationSpec{Resource: metav1.GroupResource{Group: "example.com", Resource: resource}}}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		w, err := c.StoragemigrationV1().StorageVersionMigrations().Watch(ctx, metav1.ListOptions{ResourceVersion: m.ResourceVersion, FieldSelector: "metadata.name=" + name})
		if err != nil {
			t.Fatal(err)
		}
		defer w.Stop()
		for ev := range w.ResultChan() {
			if m, ok := ev.Object.(*storagemigrationv1.StorageVersionMigration); ok && apimeta.IsStatusConditionFalse(m.Status.Conditions, "Running") {
				return m
			}
		}
		t.Fatal("the migration does not end")
		return nil
	}
	m := migrate("to-v2", "ships")
	if !apimeta.IsStatusConditionTrue(m.Status.Conditions, "Succeeded") || m.Status.ResourceVersion == "" {
		t.Fatalf("%+v", m.Status)
	}
	for name, rv := range before {
		s, err := ships.Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if changed := s.GetResourceVersion() != rv; changed != (name != "new") {
			t.Errorf("%s was stored at %s and is at %s", name, rv, s.GetResourceVersion())
		}
	}
	if crd, err = definitions.Get(ctx, "ships.example.com", metav1.GetOptions{}); err != nil || !slices.Equal(crd.Status.StoredVersions, []string{"v2"}) {
		t.Errorf("%v %v", crd.Status.StoredVersions, err)
	}
	i := slices.IndexFunc(crd.Status.Conditions, func(c apiextensionsv1.CustomResourceDefinitionCondition) bool { return c.Type == "StorageMigrating" })
	if i < 0 || crd.Status.Conditions[i].Status != "False" || crd.Status.Conditions[i].Message != "The migration has succeeded and the stored versions have been updated" {
		t.Errorf("%+v", crd.Status.Conditions)
	}
	// The old version can go now.
	crd.Spec.Versions = crd.Spec.Versions[1:]
	if _, err := definitions.Update(ctx, crd, metav1.UpdateOptions{}); err != nil {
		t.Error(err)
	}
	if _, err := ships.Get(ctx, "old-1", metav1.GetOptions{}); err != nil {
		t.Error(err)
	}
}

func awaitDefinition(ctx context.Context, t *testing.T, c apiextensions.CustomResourceDefinitionInterface, crd *apiextensionsv1.CustomResourceDefinition, ok func(*apiextensionsv1.CustomResourceDefinition) bool) {
	t.Helper()
	if ok(crd) {
		return
	}
	w, err := c.Watch(ctx, metav1.ListOptions{ResourceVersion: crd.ResourceVersion, FieldSelector: "metadata.name=" + crd.Name})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	for ev := range w.ResultChan() {
		if crd, is := ev.Object.(*apiextensionsv1.CustomResourceDefinition); is && ok(crd) {
			return
		}
	}
	t.Fatal("the definition does not get there")
}
