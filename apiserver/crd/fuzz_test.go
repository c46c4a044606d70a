package crd

import (
	"bytes"
	"context"
	"encoding/json"
	"testing"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation"
)

// definition is a valid one but for the schema, which the server has not seen yet.
func definition(schema *apiextensionsv1.JSONSchemaProps) *apiextensionsv1.CustomResourceDefinition {
	crd := &apiextensionsv1.CustomResourceDefinition{}
	crd.Name = "ships.example.com"
	crd.Spec = apiextensionsv1.CustomResourceDefinitionSpec{
		Group: "example.com", Scope: apiextensionsv1.NamespaceScoped, Conversion: &apiextensionsv1.CustomResourceConversion{Strategy: apiextensionsv1.NoneConverter},
		Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: "ships", Singular: "ship", Kind: "Ship", ListKind: "ShipList"},
		Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{Name: "v1", Served: true, Storage: true,
			Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: schema}, Subresources: &apiextensionsv1.CustomResourceSubresources{Status: &apiextensionsv1.CustomResourceSubresourceStatus{}}}},
	}
	crd.Status.AcceptedNames = crd.Spec.Names
	crd.Status.StoredVersions = []string{"v1"}
	return crd
}

// accepted reports whether the server would take a definition.
func accepted(crd *apiextensionsv1.CustomResourceDefinition) bool {
	internal := &apiextensions.CustomResourceDefinition{}
	if err := apiextensionsv1.Convert_v1_CustomResourceDefinition_To_apiextensions_CustomResourceDefinition(crd.DeepCopy(), internal, nil); err != nil {
		return false
	}
	return len(validation.ValidateCustomResourceDefinition(context.Background(), internal)) == 0
}

// FuzzSchema: what is read by a schema that is accepted stays the same when it is read
// again, has nothing in it that is not known, and can be validated.
func FuzzSchema(f *testing.F) {
	for schema, object := range map[string]string{
		`{"type":"object","properties":{"spec":{"type":"object","default":{},"properties":{"port":{"x-kubernetes-int-or-string":true,"default":80},"n":{"type":"integer","nullable":true,"default":3}}}}}`:                                                                        `{"spec":{"port":null,"x":1}}`,
		`{"type":"object","properties":{"a":{"type":"array","items":{"type":"object","required":["k"],"properties":{"k":{"type":"string"},"v":{"type":"number","default":1.5}}},"x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["k"]}}}`:                             `{"a":[{"k":"x"},{"k":"y","v":null,"z":{}}]}`,
		`{"type":"object","x-kubernetes-preserve-unknown-fields":true,"properties":{"t":{"type":"object","x-kubernetes-embedded-resource":true,"x-kubernetes-preserve-unknown-fields":true}}}`:                                                                                    `{"t":{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p","labels":{"a":1}}},"u":[1]}`,
		`{"type":"object","additionalProperties":{"type":"string","default":"d","maxLength":3}}`:                                                                                                                                                                                  `{"a":null,"b":"bbbb"}`,
		`{"type":"object","properties":{"spec":{"type":"object","properties":{"m":{"type":"integer"},"s":{"type":"string","maxLength":9}},"x-kubernetes-validations":[{"rule":"self.m > 1 && (!has(self.s) || self.s.startsWith('a'))","messageExpression":"string(self.m)"}]}}}`: `{"spec":{"m":1,"s":"b"}}`,
	} {
		f.Add([]byte(schema), []byte(object))
	}
	f.Fuzz(func(t *testing.T, schema, object []byte) {
		props := &apiextensionsv1.JSONSchemaProps{}
		if json.Unmarshal(schema, props) != nil {
			return
		}
		crd := definition(props)
		if !accepted(crd) {
			return
		}
		v := newVersion(crd, &crd.Spec.Versions[0])
		if err := v.compiled().err; err != nil {
			t.Fatalf("a schema that is accepted cannot be served: %v\n%s", err, schema)
		}
		first := v.new()
		if _, err := first.DecodeStrict(object); err != nil {
			return
		}
		data, err := json.Marshal(first)
		if err != nil {
			t.Fatalf("what was read cannot be written: %v", err)
		}
		second := v.new()
		unknown, err := second.DecodeStrict(data)
		if err != nil || len(unknown) > 0 {
			t.Fatalf("what was written cannot be read: %v, unknown %v\n%s\n%s", err, unknown, schema, data)
		}
		again, err := json.Marshal(second)
		if err != nil || !bytes.Equal(data, again) {
			t.Errorf("%s\nread again: %s (%v)\nby %s", data, again, err, schema)
		}
		s := strategy{v}
		first.Name, second.Name = "a", "a"
		_ = s.Validate(t.Context(), first)
		_ = s.ValidateUpdate(t.Context(), second, first)
	})
}
