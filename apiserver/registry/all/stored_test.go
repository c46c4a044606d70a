package all_test

import (
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/periplus/periplus/apiserver/registry"
	"github.com/periplus/periplus/apiserver/registry/all"
	"github.com/periplus/periplus/apiserver/rest"
)

// Upstream stores definitions of custom resources in a version that is served no more.
func TestDefinitionsStoredByUpstream(t *testing.T) {
	t.Parallel()
	s := runtime.NewScheme()
	if err := all.AddToScheme(s); err != nil {
		t.Fatal(err)
	}
	r := find(t, registry.Env{}, "CustomResourceDefinition")
	obj, err := rest.NewCodecs(s).Storage(r).Decode([]byte(`{"kind":"CustomResourceDefinition","apiVersion":"apiextensions.k8s.io/v1beta1","metadata":{"name":"ships.example.com"},` +
		`"spec":{"group":"example.com","version":"v1","names":{"plural":"ships","singular":"ship","kind":"Ship","listKind":"ShipList"},"scope":"Namespaced",` +
		`"validation":{"openAPIV3Schema":{"type":"object","properties":{"spec":{"type":"object"}}}},"versions":[{"name":"v1","served":true,"storage":true}],` +
		`"preserveUnknownFields":false}}`))
	if err != nil {
		t.Fatal(err)
	}
	crd := obj.(*apiextensionsv1.CustomResourceDefinition)
	if len(crd.Spec.Versions) != 1 || crd.Spec.Versions[0].Schema == nil || crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"].Type != "object" {
		t.Errorf("read %+v", crd.Spec)
	}
	if crd.APIVersion != "apiextensions.k8s.io/v1" {
		t.Errorf("read as %s", crd.APIVersion)
	}
}
