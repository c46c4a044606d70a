package validation

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// UpstreamValues makes the values in errors read as upstream's: it checks types of
// its own, whose fields have no JSON names, so that a structure is printed with the
// names of its Go fields and with what is empty.
func UpstreamValues(errs field.ErrorList) field.ErrorList {
	for _, e := range errs {
		if e.BadValue != nil && ofAPI(reflect.TypeOf(e.BadValue)) {
			e.BadValue = goNames{e.BadValue}
		}
	}
	return errs
}

// ofAPI reports a structure of k8s.io/api, or pointers to it and lists of it.
func ofAPI(t reflect.Type) bool {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice || t.Kind() == reflect.Map {
		t = t.Elem()
	}
	return t.Kind() == reflect.Struct && strings.HasPrefix(t.PkgPath(), "k8s.io/api/")
}

// goNames marshals a value with the names of its Go fields.
type goNames struct{ value any }

func (g goNames) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	err := writeGoNames(&b, reflect.ValueOf(g.value))
	return b.Bytes(), err
}

func writeGoNames(b *bytes.Buffer, v reflect.Value) error {
	plain := func() error {
		data, err := json.Marshal(v.Interface())
		b.Write(data)
		return err
	}
	if !ofAPI(v.Type()) {
		return plain()
	}
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() {
			b.WriteString("null")
			return nil
		}
		return writeGoNames(b, v.Elem())
	case reflect.Slice:
		if v.IsNil() {
			b.WriteString("null")
			return nil
		}
		b.WriteByte('[')
		for i := range v.Len() {
			if i > 0 {
				b.WriteByte(',')
			}
			if err := writeGoNames(b, v.Index(i)); err != nil {
				return err
			}
		}
		b.WriteByte(']')
		return nil
	case reflect.Struct:
		b.WriteByte('{')
		if err := writeFields(b, v, new(int)); err != nil {
			return err
		}
		b.WriteByte('}')
		return nil
	}
	return plain()
}

// writeFields writes the fields of a structure; those of embedded ones count as its own.
func writeFields(b *bytes.Buffer, v reflect.Value, written *int) error {
	for i := range v.NumField() {
		f := v.Type().Field(i)
		if f.Anonymous && f.Type.Kind() == reflect.Struct && ofAPI(f.Type) {
			if err := writeFields(b, v.Field(i), written); err != nil {
				return err
			}
			continue
		}
		if *written > 0 {
			b.WriteByte(',')
		}
		*written++
		b.WriteString(`"` + f.Name + `":`)
		if err := writeGoNames(b, v.Field(i)); err != nil {
			return err
		}
	}
	return nil
}
