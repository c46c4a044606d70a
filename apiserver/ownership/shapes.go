package ownership

import (
	"cmp"
	"reflect"
	"slices"
)

// A shape is a line of the table: what the type, or a field of it by its JSON name, is
// other than usual. Usually structs and maps consist of fields, and lists are one value.
//
//	atomic            a struct or map that is one value
//	granular          a struct that consists of fields here, although its type says otherwise
//	set               a list of values that differ
//	map a,b="c"       a list of items with the keys a and b, which is "c" where it is absent
//	kind              the type is a kind that the table covers
type shape struct{ typ, field, is string }

// shapeOf looks a field, or with "" the type itself, up in the table.
func shapeOf(t reflect.Type, field string) string {
	name := t.PkgPath() + "." + t.Name()
	i, ok := slices.BinarySearchFunc(shapes[:], shape{typ: name, field: field}, func(a, b shape) int {
		return cmp.Or(cmp.Compare(a.typ, b.typ), cmp.Compare(a.field, b.field))
	})
	if !ok {
		return ""
	}
	return shapes[i].is
}

// Covers reports whether objects of obj's type can be compared.
func Covers(obj any) bool {
	t := reflect.TypeOf(obj)
	return t.Kind() == reflect.Pointer && t.Elem().Kind() == reflect.Struct && shapeOf(t.Elem(), "") == "kind"
}
