package ownership_test

import (
	"encoding/json"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// A maker fills objects with random values and changes them.
type maker struct{ *rand.Rand }

func (m maker) once(n int) bool { return m.IntN(n) == 0 }

var words = []string{"a", "b", "c", "web", "db.example.com/x", "TCP", "UDP", "x y", "<&>", `"quoted"`, `back\slash`, "größe", "z{}:,"}

func (m maker) word() string { return words[m.IntN(len(words))] }

// fill sets v, and with depth also what it consists of.
func (m maker) fill(v reflect.Value, depth int) {
	switch p := v.Addr().Interface().(type) {
	case *metav1.Time:
		*p = metav1.Time{}
		if !m.once(3) {
			p.Time = time.Unix(int64(m.IntN(3)+1), 0)
		}
		return
	case *metav1.MicroTime:
		*p = metav1.NewMicroTime(time.Unix(int64(m.IntN(3)+1), 1000))
		return
	case *resource.Quantity:
		*p = resource.MustParse([]string{"1", "2", "100m", "1Gi"}[m.IntN(4)])
		return
	case *intstr.IntOrString:
		*p = intstr.FromInt32(m.Int32N(3))
		if m.once(2) {
			*p = intstr.FromString("http")
		}
		return
	case *metav1.Duration:
		p.Duration = time.Duration(m.IntN(3)) * time.Second
		return
	case *runtime.RawExtension:
		p.Raw = []byte([]string{`{"a":1}`, `{"a":{"b":[1]}}`}[m.IntN(2)])
		return
	case *metav1.FieldsV1:
		return
	case *[]metav1.ManagedFieldsEntry:
		return
	case *[]byte:
		*p = []byte(m.word())
		return
	case json.Unmarshaler: // another notation
		_ = json.Unmarshal([]byte([]string{`{"a":1}`, `"x"`, `true`, `1`, `["x"]`}[m.IntN(5)]), p)
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(m.word())
	case reflect.Bool:
		v.SetBool(m.once(2))
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		v.SetInt(int64(m.IntN(4)))
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		v.SetUint(uint64(m.IntN(4))) //nolint:gosec // small
	case reflect.Float32, reflect.Float64:
		v.SetFloat(float64(m.IntN(4)))
	case reflect.Pointer:
		v.SetZero()
		if depth > 0 && !m.once(3) {
			v.Set(reflect.New(v.Type().Elem()))
			m.fill(v.Elem(), depth-1)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() && !m.once(4) {
				m.fill(v.Field(i), depth-1)
			}
		}
	case reflect.Slice:
		v.SetZero()
		for range m.IntN(3) {
			if depth > 0 {
				m.grow(v, depth)
			}
		}
	case reflect.Map:
		v.SetZero()
		if depth > 0 {
			v.Set(reflect.MakeMap(v.Type()))
			for range m.IntN(3) {
				m.put(v, depth)
			}
		}
	}
}

func (m maker) grow(v reflect.Value, depth int) {
	e := reflect.New(v.Type().Elem()).Elem()
	m.fill(e, depth-1)
	v.Set(reflect.Append(v, e))
}

func (m maker) put(v reflect.Value, depth int) {
	e := reflect.New(v.Type().Elem()).Elem()
	m.fill(e, depth-1)
	v.SetMapIndex(reflect.ValueOf(m.word()).Convert(v.Type().Key()), e)
}

// change changes something somewhere in v.
func (m maker) change(v reflect.Value) {
	if _, notation := v.Addr().Interface().(json.Unmarshaler); notation || m.once(4) {
		m.fill(v, 4)
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() || m.once(6) {
			m.fill(v, 3)
			return
		}
		m.change(v.Elem())
	case reflect.Struct:
		if i := m.IntN(v.NumField() + 1); i < v.NumField() && v.Type().Field(i).IsExported() {
			m.change(v.Field(i))
		}
	case reflect.Slice:
		switch {
		case v.Len() == 0 || m.once(4):
			m.grow(v, 3)
		case m.once(4):
			v.Set(reflect.AppendSlice(v.Slice(0, 0), v.Slice(1, v.Len())))
		case m.once(6):
			v.Set(reflect.Append(v, v.Index(0))) // twice the same
		default:
			m.change(v.Index(m.IntN(v.Len())))
		}
	case reflect.Map:
		if v.IsNil() {
			v.Set(reflect.MakeMap(v.Type()))
		}
		if keys := v.MapKeys(); len(keys) > 0 && m.once(2) {
			v.SetMapIndex(keys[m.IntN(len(keys))], reflect.Value{})
			return
		}
		m.put(v, 3)
	default:
		m.fill(v, 3)
	}
}

// settled is obj as it comes from a client: it has been JSON.
func settled(t *testing.T, obj runtime.Object) runtime.Object {
	t.Helper()
	data, err := json.Marshal(obj)
	if err != nil {
		t.Fatalf("%T: %v", obj, err)
	}
	out := reflect.New(reflect.TypeOf(obj).Elem()).Interface().(runtime.Object)
	if err := json.Unmarshal(data, out); err != nil {
		t.Fatalf("%T: %v\n%s", obj, err, data)
	}
	return out
}
