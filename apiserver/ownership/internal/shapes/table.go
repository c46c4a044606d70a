package shapes

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"go/format"
	"maps"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/kube-openapi/pkg/schemaconv"
	smd "sigs.k8s.io/structured-merge-diff/v6/schema"

	"github.com/periplus/periplus/apiserver/openapi"
	"github.com/periplus/periplus/apiserver/registry"
	"github.com/periplus/periplus/apiserver/registry/all"
)

// named is implemented by the types of the API.
type named interface{ OpenAPIModelName() string }

// A walk follows Go types and the schema that holds for them side by side.
type walk struct {
	schema *smd.Schema
	rows   map[[2]string]string
	seen   map[place]bool
	inside int // above 0 inside of what is one value: what its parts are does not matter
	errs   []error
}

type place struct {
	typ    reflect.Type
	inside bool
}

// Table returns the source of the table.
func Table() ([]byte, error) {
	kinds := map[schema.GroupVersionKind]runtime.Object{}
	for _, r := range all.Resources(registry.Env{}) {
		if r.Create != nil || r.JSONOnly {
			continue
		}
		kinds[r.GVK()] = r.New()
		for i := range r.Also {
			kinds[r.Also[i].GV.WithKind(r.Kind)] = r.Also[i].New()
		}
	}
	definitions, err := openapi.Definitions(kinds, nil)
	if err != nil {
		return nil, err
	}
	types, err := schemaconv.ToSchemaFromOpenAPI(definitions, false)
	if err != nil {
		return nil, err
	}
	w := &walk{schema: types, rows: map[[2]string]string{}, seen: map[place]bool{}}
	for _, obj := range kinds {
		t := reflect.TypeOf(obj).Elem()
		w.set(t, "", "kind")
		name := reflect.Zero(t).Interface().(named).OpenAPIModelName()
		w.follow(t, smd.TypeRef{NamedType: &name}, func(is string) { w.fail("the kind %s is %s", t, is) })
	}
	if len(w.errs) > 0 {
		return nil, w.errs[0]
	}
	return w.source()
}

func (w *walk) fail(text string, args ...any) { w.errs = append(w.errs, fmt.Errorf(text, args...)) }

func (w *walk) set(t reflect.Type, field, is string) {
	k := [2]string{t.PkgPath() + "." + t.Name(), field}
	if old, ok := w.rows[k]; ok && old != is {
		w.fail("%s.%s is %q and %q", t, field, old, is)
	}
	w.rows[k] = is
}

var numberOrText = reflect.TypeFor[intstr.IntOrString]()

var marshaler = reflect.TypeFor[json.Marshaler]()

// follow looks at a type; note is told what is unusual about it in this place.
func (w *walk) follow(t reflect.Type, ref smd.TypeRef, note func(is string)) {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	atom, ok := w.schema.Resolve(ref)
	if !ok {
		w.fail("%s has no schema", t)
		return
	}
	if t.Implements(marshaler) || reflect.PointerTo(t).Implements(marshaler) {
		w.whole(t, &atom)
		return
	}
	switch t.Kind() {
	case reflect.Struct:
		w.structs(t, ref, &atom, note)
	case reflect.Map:
		if atom.Map == nil {
			w.fail("%s is no map", t)
			return
		}
		one := atom.Map.ElementRelationship == smd.Atomic
		if one {
			note("atomic")
		}
		w.part(one, t.Elem(), atom.Map.ElementType, func(is string) { w.fail("the values of %s are %s", t, is) })
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			w.whole(t, &atom)
			return
		}
		w.lists(t, &atom, note)
	default:
		w.whole(t, &atom)
	}
}

// whole checks that values of a type are one field.
func (w *walk) whole(t reflect.Type, atom *smd.Atom) {
	if w.inside > 0 || t == numberOrText && atom.Scalar != nil { // which is never a list or a map, whatever its schema says
		return
	}
	if atom.Scalar == nil || atom.Map != nil && atom.Map.ElementRelationship != smd.Atomic || atom.List != nil && atom.List.ElementRelationship != smd.Atomic {
		w.fail("%s is more than one field", t)
	}
}

func (w *walk) structs(t reflect.Type, ref smd.TypeRef, atom *smd.Atom, note func(is string)) {
	if atom.Map == nil {
		w.fail("%s is no struct", t)
		return
	}
	own := *atom
	if ref.NamedType != nil {
		own, _ = w.schema.Resolve(smd.TypeRef{NamedType: ref.NamedType})
	}
	one, always := atom.Map.ElementRelationship == smd.Atomic, ref.NamedType != nil && own.Map.ElementRelationship == smd.Atomic
	if always {
		w.set(t, "", "atomic")
	}
	switch {
	case one && !always:
		note("atomic")
	case always && !one:
		note("granular")
	}
	if here := (place{t, one || w.inside > 0}); !w.seen[here] {
		w.seen[here] = true
		w.enter(one, func() { w.fields(t, atom.Map) })
	}
}

// part follows the items or values of t, which may be one value.
func (w *walk) part(one bool, t reflect.Type, ref smd.TypeRef, note func(is string)) {
	if one {
		note = func(string) {}
	}
	w.enter(one, func() { w.follow(t, ref, note) })
}

func (w *walk) enter(one bool, f func()) {
	if one {
		w.inside++
		defer func() { w.inside-- }()
	}
	f()
}

func (w *walk) fields(t reflect.Type, m *smd.Map) {
	for f := range t.Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case name == "-" || !f.IsExported():
			continue
		case name == "" && f.Anonymous:
			w.fields(f.Type, m)
			continue
		case name == "":
			name = f.Name
		}
		s, ok := m.FindField(name)
		if !ok {
			w.fail("%s.%s is not in the schema", t, name)
			continue
		}
		w.follow(f.Type, s.Type, func(is string) { w.set(t, name, is) })
	}
}

func (w *walk) lists(t reflect.Type, atom *smd.Atom, note func(is string)) {
	if atom.List == nil {
		w.fail("%s is no list", t)
		return
	}
	one := atom.List.ElementRelationship == smd.Atomic
	if atom.List.ElementRelationship == smd.Associative {
		if len(atom.List.Keys) == 0 {
			note("set")
		} else {
			note("map " + w.keys(t.Elem(), atom.List))
		}
	}
	w.part(one, t.Elem(), atom.List.ElementType, func(is string) { w.fail("the items of %s are %s", t, is) })
}

// keys lists the keys of a list's items, with the values of those that may be left out.
func (w *walk) keys(item reflect.Type, list *smd.List) string {
	atom, ok := w.schema.Resolve(list.ElementType)
	if !ok || atom.Map == nil {
		w.fail("the items of a list of %s have no fields", item)
		return ""
	}
	var out []string
	for _, key := range slices.Sorted(slices.Values(list.Keys)) {
		s, _ := atom.Map.FindField(key)
		if s.Default != nil {
			def, err := json.Marshal(s.Default)
			if err != nil {
				w.fail("the default of %s of %s: %w", key, item, err)
			}
			key += "=" + string(def)
		}
		out = append(out, key)
	}
	return strings.Join(out, ",")
}

func (w *walk) source() ([]byte, error) {
	var out bytes.Buffer
	out.WriteString("// Code generated by internal/shapes. DO NOT EDIT.\n\npackage ownership\n\n// shapes is sorted by type and field.\nvar shapes = [...]shape{\n")
	rows := slices.SortedFunc(maps.Keys(w.rows), func(a, b [2]string) int { return cmp.Or(cmp.Compare(a[0], b[0]), cmp.Compare(a[1], b[1])) })
	for _, k := range rows {
		fmt.Fprintf(&out, "{%q, %q, %q},\n", k[0], k[1], w.rows[k])
	}
	out.WriteString("}\n")
	return format.Source(out.Bytes())
}
