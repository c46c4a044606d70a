package ownership

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/structured-merge-diff/v6/value"
)

// A form says how values of a type are compared.
type form uint8

const (
	// Values that are one field, whatever they consist of.
	text form = iota
	truth
	integer
	natural
	real
	octets
	instant      // metav1.Time, null when it is zero
	fineInstant  // metav1.MicroTime
	quantity     // resource.Quantity
	numberOrText // intstr.IntOrString
	foreign      // writes its own JSON

	oneList
	oneMap
	oneStruct

	// Values that consist of fields.
	byField
	byMapKey
	byItem  // a list whose items have keys
	byValue // a list that is a set
)

// whole reports whether values of the form are owned as a whole.
func (f form) whole() bool { return f <= oneStruct }

// A plan says how to compare values of a Go type. Pointers have their target's plan.
type plan struct {
	form form
	typ  reflect.Type // without pointers
	elem *plan        // of lists and maps
	keys []key        // byItem, sorted by name

	make   sync.Once
	fields []field // of structs, sorted by name; see parts
}

// A field is one of a struct, or of a struct inlined there.
type field struct {
	name      string // in JSON
	label     string // as it is written in a set: "f:name":
	index     []int
	omitEmpty bool
	omitZero  func(reflect.Value) bool
	plan      *plan
}

// A key is a field by which the items of a list are told apart.
type key struct {
	name    string
	index   []int
	omit    bool // when empty
	def     *keyPart
	pointer bool
}

// plans are the plans of struct types.
type plans struct {
	mu     sync.Mutex
	byType map[planKey]*plan
}

type planKey struct {
	typ  reflect.Type
	form form
}

var known = plans{byType: map[planKey]*plan{}}

// of returns the plan of a struct type, as one value or by its fields.
func (p *plans) of(t reflect.Type, f form) *plan {
	p.mu.Lock()
	defer p.mu.Unlock()
	k := planKey{t, f}
	if p.byType[k] == nil {
		p.byType[k] = &plan{form: f, typ: t}
	}
	return p.byType[k]
}

var (
	marshalerType = reflect.TypeFor[json.Marshaler]()
	special       = map[reflect.Type]form{
		reflect.TypeFor[metav1.Time]():        instant,
		reflect.TypeFor[metav1.MicroTime]():   fineInstant,
		reflect.TypeFor[resource.Quantity]():  quantity,
		reflect.TypeFor[intstr.IntOrString](): numberOrText,
	}
)

// planOf returns the plan of a type in a place for which the table says shape.
func planOf(t reflect.Type, shape string) *plan {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if f, ok := special[t]; ok {
		return &plan{form: f, typ: t}
	}
	if t.Implements(marshalerType) || reflect.PointerTo(t).Implements(marshalerType) {
		return &plan{form: foreign, typ: t}
	}
	switch t.Kind() {
	case reflect.String:
		return &plan{form: text, typ: t}
	case reflect.Bool:
		return &plan{form: truth, typ: t}
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return &plan{form: integer, typ: t}
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return &plan{form: natural, typ: t}
	case reflect.Float32, reflect.Float64:
		return &plan{form: real, typ: t}
	case reflect.Struct:
		if shape == "atomic" || shape != "granular" && shapeOf(t, "") == "atomic" {
			return known.of(t, oneStruct)
		}
		return known.of(t, byField)
	case reflect.Map:
		f := byMapKey
		if shape == "atomic" {
			f = oneMap
		}
		return &plan{form: f, typ: t, elem: planOf(t.Elem(), "")}
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			return &plan{form: octets, typ: t}
		}
		out := &plan{form: oneList, typ: t, elem: planOf(t.Elem(), "")}
		kind, names, _ := strings.Cut(shape, " ")
		switch kind {
		case "set":
			out.form = byValue
		case "map":
			out.form, out.keys = byItem, keysOf(out.elem.typ, names)
		}
		return out
	}
	return &plan{form: foreign, typ: t}
}

// keysOf reads "containerPort,protocol="TCP"": names and what they are when absent.
func keysOf(item reflect.Type, names string) []key {
	var out []key
	fields := fieldsOf(item, nil, func(reflect.StructField, string) *plan { return nil })
	for _, name := range strings.Split(names, ",") {
		name, def, hasDefault := strings.Cut(name, "=")
		i := slices.IndexFunc(fields, func(f field) bool { return f.name == name })
		if i < 0 {
			panic(fmt.Sprintf("the key %s of %s is no field", name, item))
		}
		k := key{name: name, index: fields[i].index, omit: fields[i].omitEmpty, pointer: item.FieldByIndex(fields[i].index).Type.Kind() == reflect.Pointer}
		if hasDefault {
			var v any
			if err := json.Unmarshal([]byte(def), &v); err != nil {
				panic(fmt.Sprintf("the default of the key %s of %s: %v", name, item, err))
			}
			part := partOf(reflect.ValueOf(v))
			part.name = name
			k.def = &part
		}
		out = append(out, k)
	}
	slices.SortFunc(out, func(a, b key) int { return strings.Compare(a.name, b.name) })
	return out
}

// parts returns the fields of a struct's plan.
func (p *plan) parts() []field {
	p.make.Do(func() {
		p.fields = fieldsOf(p.typ, nil, func(f reflect.StructField, name string) *plan { return planOf(f.Type, shapeOf(p.typ, name)) })
	})
	return p.fields
}

// fieldsOf lists the fields of t and of what is inlined there, sorted by JSON name.
func fieldsOf(t reflect.Type, prefix []int, planOf func(f reflect.StructField, name string) *plan) []field {
	var out []field
	for i := range t.NumField() {
		f := t.Field(i)
		tag := f.Tag.Get("json")
		name, options, _ := strings.Cut(tag, ",")
		index := append(slices.Clone(prefix), i)
		switch {
		case tag == "-" || f.PkgPath != "" && !f.Anonymous:
			continue
		case f.Anonymous && name == "":
			if f.Type.Kind() == reflect.Struct {
				out = append(out, fieldsOf(f.Type, index, func(inner reflect.StructField, name string) *plan {
					return innerPlan(f.Type, inner, name)
				})...)
			}
			continue
		case name == "":
			name = f.Name
		}
		one := field{name: name, label: `"f:` + name + `":`, index: index, plan: planOf(f, name)}
		for option := range strings.SplitSeq(options, ",") {
			switch option {
			case "omitempty":
				one.omitEmpty = true
			case "omitzero":
				one.omitZero = value.OmitZeroFunc(f.Type)
			}
		}
		out = append(out, one)
	}
	slices.SortFunc(out, func(a, b field) int { return strings.Compare(a.name, b.name) })
	return out
}

// innerPlan is the plan of a field of an inlined struct.
func innerPlan(outer reflect.Type, f reflect.StructField, name string) *plan {
	return planOf(f.Type, shapeOf(outer, name))
}

// absent reports whether the field is left out of JSON when it holds v.
func (f *field) absent(v reflect.Value) bool {
	if f.omitEmpty {
		switch v.Kind() {
		case reflect.String, reflect.Map, reflect.Slice, reflect.Array:
			if v.Len() == 0 {
				return true
			}
		case reflect.Struct:
		case reflect.Pointer, reflect.Interface:
			if v.IsNil() {
				return true
			}
		default:
			if v.IsZero() {
				return true
			}
		}
	}
	return f.omitZero != nil && f.omitZero(v)
}

// get returns the field of a struct.
func (f *field) get(v reflect.Value) reflect.Value {
	for _, i := range f.index {
		v = v.Field(i)
	}
	return v
}
