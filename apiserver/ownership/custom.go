package ownership

import (
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/structured-merge-diff/v6/schema"
	"sigs.k8s.io/structured-merge-diff/v6/typed"
)

// A Custom object has no Go type: what it holds besides metadata are JSON values.
type Custom interface {
	Parts() (*metav1.ObjectMeta, map[string]any)
}

// Types are the types of a custom kind in one version.
type Types struct {
	schema *schema.Schema
	root   schema.Map
}

// TypesOf takes the types of a kind from an object of it.
func TypesOf(object *typed.TypedValue) (*Types, error) {
	t := &Types{schema: object.Schema()}
	atom, ok := t.schema.Resolve(object.TypeRef())
	if !ok || atom.Map == nil {
		return nil, errors.New("the type of the kind is not that of an object")
	}
	atom.Map.CopyInto(&t.root)
	return t, nil
}

// Compare compares two custom objects as the function of the same name does others.
func (t *Types) Compare(before, after Custom, filter *Filter, into *Change) error {
	w := walkers.Get().(*walker)
	defer w.free()
	w.taken.out, w.removed.out = into.Taken[:0], into.Removed[:0]
	lm, l := before.Parts()
	rm, r := after.Parts()
	f := filter.within()
	names := w.keys(l, r)
	start := len(w.names) - len(names)
	at, _ := slices.BinarySearch(names, "metadata")
	compare := func(names []string) {
		for _, name := range names {
			t.field(w, &t.root, name, l, r, f)
		}
	}
	compare(names[:at])
	if below, keep := f.field("metadata"); keep {
		w.under(step{label: `"f:metadata":`}, known.of(metaType, byField), reflect.ValueOf(lm).Elem(), reflect.ValueOf(rm).Elem(), there, there, below)
	}
	compare(w.names[start+at:])
	into.Taken, into.Removed = w.taken.end(), w.removed.end()
	return w.err
}

var metaType = reflect.TypeFor[metav1.ObjectMeta]()

// keys appends the keys of two maps to the walker's names, sorted, and returns them.
func (w *walker) keys(l, r map[string]any) []string {
	start := len(w.names)
	for name := range l {
		w.names = append(w.names, name)
	}
	for name := range r {
		if _, ok := l[name]; !ok {
			w.names = append(w.names, name)
		}
	}
	slices.Sort(w.names[start:])
	return w.names[start:]
}

// field compares a field of two maps, one of which has it.
func (t *Types) field(w *walker, m *schema.Map, name string, l, r map[string]any, f *Filter) {
	below, keep := f.field(name)
	if !keep {
		return
	}
	ref := m.ElementType
	if known, ok := m.FindField(name); ok {
		ref = known.Type
	} else if ref == (schema.TypeRef{}) {
		w.fail(name)
		return
	}
	lv, inL := l[name]
	rv, inR := r[name]
	w.steps = append(w.steps, step{name: name})
	t.values(w, ref, lv, rv, sideOf(lv, inL), sideOf(rv, inR), below)
	w.back()
}

func (w *walker) fail(what string) {
	if w.err == nil {
		w.err = fmt.Errorf("%s is not what the schema says", what)
	}
}

func sideOf(v any, has bool) side {
	switch {
	case !has:
		return absent
	case v == nil:
		return null
	}
	return there
}

// nature is what a JSON value is.
type nature uint8

const (
	nothing nature = iota // absent or null
	scalar
	sequence
	object
)

func natureOf(v any) nature {
	switch v.(type) {
	case nil:
		return nothing
	case map[string]any:
		return object
	case []any:
		return sequence
	}
	return scalar
}

// values compares two values at the path of w.steps, at least one of which is not absent.
func (t *Types) values(w *walker, ref schema.TypeRef, l, r any, ls, rs side, f *Filter) {
	atom, ok := t.schema.Resolve(ref)
	if !ok {
		w.fail("a field")
		return
	}
	nl, nr := natureOf(l), natureOf(r)
	if !allowed(&atom, nl) || !allowed(&atom, nr) {
		w.fail(w.steps[len(w.steps)-1].name)
		return
	}
	partsL, partsR := parts(&atom, l, nl), parts(&atom, r, nr)
	if !partsL && !partsR { // one value on both sides, or nothing in it
		t.whole(w, l, r, ls, rs)
		return
	}
	switch {
	case ls == absent:
		w.taken.addParent(w.steps)
	case rs == absent:
		w.removed.addParent(w.steps)
	case nl != nr && nl != nothing && nr != nothing:
		w.taken.addParent(w.steps) // from one value to several, or the other way round
	}
	if nl == object && partsL || nr == object && partsR {
		lm, _ := l.(map[string]any)
		rm, _ := r.(map[string]any)
		start := len(w.names)
		n := len(w.keys(lm, rm))
		for i := start; i < start+n; i++ {
			t.field(w, atom.Map, w.names[i], lm, rm, f)
		}
		w.names = w.names[:start]
	}
	if nl == sequence && partsL || nr == sequence && partsR {
		ll, _ := l.([]any)
		rl, _ := r.([]any)
		t.lists(w, atom.List, ll, rl, f)
	}
}

func (t *Types) whole(w *walker, l, r any, ls, rs side) {
	switch {
	case ls == absent:
		w.taken.add(w.steps)
	case rs == absent:
		w.removed.add(w.steps)
	case !sameAny(l, r):
		w.taken.add(w.steps)
	}
}

func allowed(a *schema.Atom, n nature) bool {
	switch n {
	case scalar:
		return a.Scalar != nil
	case sequence:
		return a.List != nil
	case object:
		return a.Map != nil
	}
	return true
}

// parts reports whether a value consists of fields, at least one.
func parts(a *schema.Atom, v any, n nature) bool {
	switch n {
	case sequence:
		return a.List.ElementRelationship != schema.Atomic && len(v.([]any)) > 0
	case object:
		return a.Map.ElementRelationship != schema.Atomic && len(v.(map[string]any)) > 0
	}
	return false
}

// sameAny compares JSON values; numbers by what they are.
func sameAny(l, r any) bool {
	switch a := l.(type) {
	case map[string]any:
		b, ok := r.(map[string]any)
		if !ok || len(a) != len(b) {
			return false
		}
		for k, v := range a {
			if other, ok := b[k]; !ok || !sameAny(v, other) {
				return false
			}
		}
		return true
	case []any:
		b, ok := r.([]any)
		return ok && slices.EqualFunc(a, b, sameAny)
	case int64:
		if b, ok := r.(float64); ok {
			return float64(a) == b
		}
	case float64:
		if b, ok := r.(int64); ok {
			return a == float64(b)
		}
	}
	if natureOf(r) > scalar {
		return false
	}
	return l == r
}

// lists compares items as walker.lists does.
func (t *Types) lists(w *walker, list *schema.List, l, r []any, f *Filter) {
	start, from := len(w.items), len(w.parts)
	defer func() { w.items, w.parts = w.items[:start], w.parts[:from] }()
	t.addItems(w, list, l, false)
	t.addItems(w, list, r, true)
	if w.err != nil {
		return
	}
	w.sortItems(start)
	for i, end := start, len(w.items); i < end; {
		middle, next := w.group(i, end)
		first := w.items[i]
		w.steps = append(w.steps, step{parts: w.parts[first.from:first.to:first.to]})
		t.alike(w, list, l, r, i, middle, next, f)
		w.back()
		i = next
	}
}

func (t *Types) alike(w *walker, list *schema.List, l, r []any, i, middle, end int, f *Filter) {
	left, right := middle-i, end-middle
	switch {
	case left <= 1 && right <= 1:
		var lv, rv any
		if left == 1 {
			lv = l[w.items[i].at]
		}
		if right == 1 {
			rv = r[w.items[middle].at]
		}
		t.values(w, list.ElementType, lv, rv, sideOf(lv, left == 1), sideOf(rv, right == 1), f)
	case left >= 2 && right >= 2:
		equal := left == right
		for n := 0; equal && n < left; n++ {
			equal = sameAny(l[w.items[i+n].at], r[w.items[middle+n].at])
		}
		if !equal {
			w.taken.add(w.steps)
		}
	case left >= 2:
		w.removed.add(w.steps)
		if right == 1 {
			t.values(w, list.ElementType, nil, r[w.items[middle].at], absent, there, f)
		}
	default:
		w.taken.add(w.steps)
		if left == 1 {
			t.values(w, list.ElementType, l[w.items[i].at], nil, there, absent, f)
		}
	}
}

func (t *Types) addItems(w *walker, list *schema.List, items []any, right bool) {
	var fields *schema.Map
	if len(list.Keys) > 0 {
		if atom, ok := t.schema.Resolve(list.ElementType); ok {
			fields = atom.Map
		}
	}
	for i, v := range items {
		from := len(w.parts)
		if len(list.Keys) == 0 {
			if natureOf(v) != scalar || !w.addPart("", v) {
				w.err = ErrNoKeys
				return
			}
		}
		m, ok := v.(map[string]any)
		if len(list.Keys) > 0 && (!ok || fields == nil) {
			w.err = ErrNoKeys
			return
		}
		for _, name := range list.Keys {
			v, ok := m[name]
			if !ok {
				known, _ := fields.FindField(name)
				if v = known.Default; v == nil {
					continue
				}
			}
			if !w.addPart(name, v) {
				w.err = ErrNoKeys
				return
			}
		}
		if len(w.parts) == from {
			w.err = ErrNoKeys
			return
		}
		slices.SortFunc(w.parts[from:], func(a, b keyPart) int { return cmp.Compare(a.name, b.name) })
		w.items = append(w.items, item{from, len(w.parts), right, i})
	}
}

// addPart adds a key. Whole numbers, strings and truth values are keys that are known here.
func (w *walker) addPart(name string, v any) bool {
	part := keyPart{name: name}
	switch v := v.(type) {
	case string:
		part.kind, part.text = partText, v
	case bool:
		part.kind = partBool
		if v {
			part.n = 1
		}
	case int64:
		part.n = v
	case float64:
		if part.n = int64(v); float64(part.n) != v {
			return false
		}
	default:
		return false
	}
	w.parts = append(w.parts, part)
	return true
}
