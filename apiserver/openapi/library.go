package openapi

import (
	"fmt"
	"maps"
	"reflect"
	"strings"

	apiextensions "k8s.io/apiextensions-apiserver/pkg/generated/openapi"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	aggregator "k8s.io/kube-aggregator/pkg/generated/openapi"
	"k8s.io/kube-openapi/pkg/common"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

const (
	gvkExtension = "x-kubernetes-group-version-kind"
	// preserveExtension is on schemas of objects whose unknown fields are kept.
	preserveExtension = "x-kubernetes-preserve-unknown-fields"
	definitions       = "#/definitions/"
)

// A library makes definitions from Go types. They refer to each other in the
// form of OpenAPI v2 and are turned into the form of a document at the end.
type library struct {
	// ready holds the types that come with a definition: metav1, CustomResourceDefinition,
	// APIService, and those with a notation of their own, as Quantity.
	ready map[string]common.OpenAPIDefinition
	marks map[string]*typeMark
	out   map[string]*spec.Schema // by model name
}

func newLibrary() (*library, error) {
	marks, err := readMarkers(markersText)
	if err != nil {
		return nil, err
	}
	ref := func(name string) spec.Ref { return spec.MustCreateRef(definitions + name) }
	ready := aggregator.GetOpenAPIDefinitions(ref)
	maps.Copy(ready, apiextensions.GetOpenAPIDefinitions(ref))
	return &library{ready: ready, marks: marks, out: map[string]*spec.Schema{}}, nil
}

// again returns a library of the same types, without definitions.
func (l *library) again() *library {
	return &library{ready: l.ready, marks: l.marks, out: map[string]*spec.Schema{}}
}

// named is implemented by the types of the API.
type named interface{ OpenAPIModelName() string }

// modelName returns the name of a type's definition, "" if it has none.
func modelName(t reflect.Type) string {
	if n, ok := reflect.Zero(t).Interface().(named); ok && t.Kind() != reflect.Pointer {
		return n.OpenAPIModelName()
	}
	return ""
}

// customName is the model name of kinds without a Go type: the group's labels
// backwards.
func customName(gvk schema.GroupVersionKind) string {
	labels := strings.Split(gvk.Group, ".")
	for i, j := 0, len(labels)-1; i < j; i, j = i+1, j-1 {
		labels[i], labels[j] = labels[j], labels[i]
	}
	return strings.Join(append(labels, gvk.Version, gvk.Kind), ".")
}

// kind marks a definition as that of a kind.
func (l *library) kind(name string, gvk schema.GroupVersionKind) {
	s := l.out[name]
	entries, _ := s.Extensions[gvkExtension].([]any)
	entry := gvkOf(gvk)
	for _, e := range entries {
		if maps.Equal(e.(map[string]any), entry) {
			return
		}
	}
	s.AddExtension(gvkExtension, append(entries, entry))
}

func gvkOf(gvk schema.GroupVersionKind) map[string]any {
	return map[string]any{"group": gvk.Group, "version": gvk.Version, "kind": gvk.Kind}
}

// define adds the definition of a type, and all that it refers to, and returns its name.
func (l *library) define(t reflect.Type) string {
	name := modelName(t)
	if l.out[name] != nil || name == "" {
		return name
	}
	if l.copy(name) {
		return name
	}
	if n, ok := reflect.Zero(t).Interface().(notation); ok {
		l.out[name] = notationSchema(t, n)
		return name
	}
	s := &spec.Schema{SchemaProps: spec.SchemaProps{Type: []string{"object"}, Description: docsOf(t)[""]}}
	l.out[name] = s
	if obj, ok := reflect.New(t).Interface().(runtime.Object); ok {
		gvks, _, _ := scheme.Scheme.ObjectKinds(obj) // the types of what is inside a kind have none
		for _, gvk := range gvks {
			l.kind(name, gvk)
		}
	}
	if m := l.marks[goName(t)]; m != nil && m.atomic {
		s.AddExtension("x-kubernetes-map-type", "atomic")
	}
	l.fields(t, s)
	return name
}

// notation is implemented by types that are written in JSON in their own way.
type notation interface {
	OpenAPISchemaType() []string
	OpenAPISchemaFormat() string
}

// notationSchema describes a type with its own notation, in v3 and, inside, in v2.
func notationSchema(t reflect.Type, n notation) *spec.Schema {
	description := docsOf(t)[""]
	if description == "" {
		description = t.Name() + " is written as " + strings.Join(n.OpenAPISchemaType(), " or ") + "."
	}
	s := &spec.Schema{SchemaProps: spec.SchemaProps{Type: n.OpenAPISchemaType(), Format: n.OpenAPISchemaFormat(), Description: description}}
	if several, ok := n.(interface{ OpenAPIV3OneOfTypes() []string }); ok {
		v2 := *s
		s.Type, s.OneOf = nil, common.GenerateOpenAPIV3OneOfSchema(several.OpenAPIV3OneOfTypes())
		s.Description = t.Name() + " is written as " + strings.Join(several.OpenAPIV3OneOfTypes(), " or ") + "."
		s.AddExtension(common.ExtensionV2Schema, v2)
	}
	return s
}

// copy adds a definition that is ready, with those that it needs.
func (l *library) copy(name string) bool {
	if l.out[name] != nil {
		return true
	}
	def, ok := l.ready[name]
	if ok {
		l.out[name] = &def.Schema
		for _, d := range def.Dependencies {
			l.copy(d)
		}
	}
	return ok
}

func goName(t reflect.Type) string { return t.PkgPath() + "." + t.Name() }

// docsOf returns the documentation of a type ("") and its fields (by JSON name).
func docsOf(t reflect.Type) map[string]string {
	if d, ok := reflect.Zero(t).Interface().(interface{ SwaggerDoc() map[string]string }); ok {
		return d.SwaggerDoc()
	}
	return nil
}

// fields adds the properties of a struct, those of inlined structs included.
func (l *library) fields(t reflect.Type, s *spec.Schema) {
	docs, mark := docsOf(t), l.marks[goName(t)]
	for f := range t.Fields() {
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case name == "-" || !f.IsExported():
			continue
		case name == "" && f.Anonymous:
			l.fields(f.Type, s)
			continue
		case name == "":
			name = f.Name
		}
		m := &fieldMark{}
		if mark != nil && mark.fields[name] != nil {
			m = mark.fields[name]
		}
		omit := strings.Contains(","+options+",", ",omitempty,")
		if m.required || !omit && !m.optional {
			s.Required = append(s.Required, name)
		}
		s.SetProperty(name, l.property(f, m, docs[name], omit))
	}
}

func (l *library) property(f reflect.StructField, m *fieldMark, description string, omit bool) spec.Schema {
	p := l.schema(f.Type)
	p.Description = description
	if values := l.enum(f.Type); values != nil {
		var text strings.Builder
		text.WriteString(strings.TrimRight(description, " \n"))
		text.WriteString("\n\nPossible enum values:")
		for _, v := range values {
			fmt.Fprintf(&text, "\n - `%q`", v)
		}
		p.Description = text.String()
	}
	if p.Default = m.value; p.Default == nil {
		p.Default = zero(f.Type, omit)
	}
	for extension, value := range map[string]string{
		"x-kubernetes-patch-strategy":  f.Tag.Get("patchStrategy"),
		"x-kubernetes-patch-merge-key": f.Tag.Get("patchMergeKey"),
		"x-kubernetes-list-type":       m.list,
		"x-kubernetes-map-type":        m.mapType,
	} {
		if value != "" {
			p.AddExtension(extension, value)
		}
	}
	if m.keys != nil {
		p.AddExtension("x-kubernetes-list-map-keys", m.keys)
	}
	return p
}

// enum returns the values of an enumeration.
func (l *library) enum(t reflect.Type) []any {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if m := l.marks[goName(t)]; m != nil {
		return m.enum
	}
	return nil
}

// schema returns a schema for a value of type t.
func (l *library) schema(t reflect.Type) spec.Schema {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if name := l.define(t); name != "" {
		return spec.Schema{SchemaProps: spec.SchemaProps{Ref: spec.MustCreateRef(definitions + name)}}
	}
	simple := func(name, format string) spec.Schema {
		return spec.Schema{SchemaProps: spec.SchemaProps{Type: []string{name}, Format: format, Enum: l.enum(t)}}
	}
	switch t.Kind() {
	case reflect.String:
		return simple("string", "")
	case reflect.Bool:
		return simple("boolean", "")
	case reflect.Int32, reflect.Uint16, reflect.Int16, reflect.Uint:
		return simple("integer", "int32")
	case reflect.Int, reflect.Int64, reflect.Uint64, reflect.Uint32:
		return simple("integer", "int64")
	case reflect.Float64:
		return simple("number", "double")
	case reflect.Float32:
		return simple("number", "float")
	case reflect.Slice, reflect.Array:
		if t.Elem().Kind() == reflect.Uint8 {
			return simple("string", "byte")
		}
		items := l.schema(t.Elem())
		return spec.Schema{SchemaProps: spec.SchemaProps{Type: []string{"array"}, Items: &spec.SchemaOrArray{Schema: &items}}}
	case reflect.Map:
		values := l.schema(t.Elem())
		return spec.Schema{SchemaProps: spec.SchemaProps{Type: []string{"object"}, AdditionalProperties: &spec.SchemaOrBool{Allows: true, Schema: &values}}}
	}
	return spec.Schema{} // anything
}

// zero is the value of what is left out, where Go cannot tell the two apart.
func zero(t reflect.Type, omit bool) any {
	if _, own := reflect.New(t).Interface().(interface{ UnmarshalJSON([]byte) error }); own {
		return nil // reads null as it likes
	}
	switch t.Kind() {
	case reflect.Struct:
		if t.NumField() == 1 && t.Field(0).Anonymous {
			return zero(t.Field(0).Type, omit)
		}
		return map[string]any{}
	case reflect.String:
		if !omit {
			return ""
		}
	case reflect.Bool:
		if !omit {
			return false
		}
	case reflect.Int, reflect.Int16, reflect.Int32, reflect.Int64, reflect.Uint, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Float32, reflect.Float64:
		if !omit {
			return 0
		}
	}
	return nil
}
