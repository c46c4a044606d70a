package ownership

import (
	"bytes"
	"encoding/json"
	"reflect"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// isNull reports whether a value writes null although it is there.
func isNull(p *plan, v reflect.Value) bool {
	switch p.form {
	case instant:
		return timeOf(v).IsZero()
	case fineInstant:
		return microTimeOf(v).IsZero()
	}
	data, err := json.Marshal(shown(v))
	return err == nil && string(data) == "null"
}

// empty reports whether a value that consists of fields has none.
func empty(p *plan, v reflect.Value) bool {
	switch p.form {
	case byField:
		for i := range p.parts() {
			if !p.fields[i].absent(p.fields[i].get(v)) {
				return false
			}
		}
		return true
	case byMapKey, byItem, byValue:
		return v.Len() == 0
	}
	return false
}

// same reports whether two values, neither of which is null, are equal as clients see them.
func same(p *plan, l, r reflect.Value) bool {
	switch p.form {
	case text:
		return l.String() == r.String()
	case truth:
		return l.Bool() == r.Bool()
	case integer:
		return l.Int() == r.Int()
	case natural:
		return l.Uint() == r.Uint()
	case real:
		return l.Float() == r.Float()
	case octets:
		return bytes.Equal(l.Bytes(), r.Bytes())
	case instant:
		return timeOf(l).Unix() == timeOf(r).Unix()
	case fineInstant:
		return microTimeOf(l).UnixMicro() == microTimeOf(r).UnixMicro()
	case quantity:
		return sameQuantity(l, r)
	case numberOrText:
		a, b := pointerTo[intstr.IntOrString](l), pointerTo[intstr.IntOrString](r)
		return a.Type == b.Type && (a.Type == intstr.Int && a.IntVal == b.IntVal || a.Type == intstr.String && a.StrVal == b.StrVal)
	case oneList, byItem, byValue:
		return sameLists(p, l, r)
	case oneMap, byMapKey:
		return sameMaps(p, l, r)
	case oneStruct, byField:
		for i := range p.parts() {
			if !sameFields(&p.fields[i], l, r) {
				return false
			}
		}
		return true
	}
	return sameJSON(shown(l), shown(r))
}

func sameFields(f *field, l, r reflect.Value) bool {
	lv, rv := f.get(l), f.get(r)
	lo, ro := there, there
	if f.absent(lv) {
		lo = absent
	}
	if f.absent(rv) {
		ro = absent
	}
	if lo != ro || lo == absent {
		return lo == ro
	}
	return sameItems(f.plan, lv, rv)
}

// sameItems is same for values that may be null.
func sameItems(p *plan, l, r reflect.Value) bool {
	l, ls := settle(p, l, there)
	r, rs := settle(p, r, there)
	return ls == rs && (ls == null || same(p, l, r))
}

func sameLists(p *plan, l, r reflect.Value) bool {
	n := l.Len()
	if n != r.Len() {
		return false
	}
	if n == 0 || l.UnsafePointer() == r.UnsafePointer() {
		return true
	}
	for i := range n {
		if !sameItems(p.elem, l.Index(i), r.Index(i)) {
			return false
		}
	}
	return true
}

func sameMaps(p *plan, l, r reflect.Value) bool {
	if l.Len() != r.Len() {
		return false
	}
	if l.UnsafePointer() == r.UnsafePointer() {
		return true
	}
	for it := l.MapRange(); it.Next(); {
		other := r.MapIndex(it.Key())
		if !other.IsValid() || !sameItems(p.elem, it.Value(), other) {
			return false
		}
	}
	return true
}

func sameJSON(l, r any) bool {
	a, errA := json.Marshal(l)
	b, errB := json.Marshal(r)
	if errA != nil || errB != nil || bytes.Equal(a, b) {
		return errA == nil && errB == nil
	}
	var x, y any
	return json.Unmarshal(a, &x) == nil && json.Unmarshal(b, &y) == nil && reflect.DeepEqual(x, y)
}

// sameQuantity compares amounts and how they are written.
func sameQuantity(l, r reflect.Value) bool {
	a, b := quantityOf(l), quantityOf(r)
	return a.Format == b.Format && a.Cmp(*b) == 0
}

// shown returns v with all its methods.
func shown(v reflect.Value) any {
	if v.CanAddr() {
		return v.Addr().Interface()
	}
	return v.Interface()
}

func quantityOf(v reflect.Value) *resource.Quantity { return pointerTo[resource.Quantity](v) }
func timeOf(v reflect.Value) *metav1.Time           { return pointerTo[metav1.Time](v) }
func microTimeOf(v reflect.Value) *metav1.MicroTime { return pointerTo[metav1.MicroTime](v) }

// pointerTo returns v, which is in an object or, inside a map, a copy.
func pointerTo[T any](v reflect.Value) *T {
	if v.CanAddr() {
		return v.Addr().Interface().(*T)
	}
	out := v.Interface().(T)
	return &out
}
