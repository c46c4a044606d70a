package ownership

import (
	"cmp"
	"reflect"
	"slices"
)

// An item is one of a list, of either side, known by parts[from:to] of the walker.
type item struct {
	from, to int
	right    bool
	at       int // its index in the list
}

// lists compares items that have the same keys, or values that are equal, in the order
// of these. Items that occur more than once are compared together.
func (w *walker) lists(p *plan, l, r reflect.Value, ls, rs side, f *Filter) {
	start, parts := len(w.items), len(w.parts)
	defer func() { w.items, w.parts = w.items[:start], w.parts[:parts] }()
	if ls == there {
		w.addItems(p, l, false)
	}
	if rs == there {
		w.addItems(p, r, true)
	}
	if w.err != nil {
		return
	}
	w.sortItems(start)
	for i, end := start, len(w.items); i < end; {
		middle, next := w.group(i, end)
		first := w.items[i]
		w.steps = append(w.steps, step{parts: w.parts[first.from:first.to:first.to]})
		w.alike(p, l, r, i, middle, next, f)
		w.back()
		i = next
	}
}

// sortItems sorts items from start on by their keys; of the same keys, the left side's first.
func (w *walker) sortItems(start int) {
	slices.SortFunc(w.items[start:], func(a, b item) int {
		if c := compareParts(w.parts[a.from:a.to], w.parts[b.from:b.to]); c != 0 || a.right == b.right {
			return cmp.Or(c, cmp.Compare(a.at, b.at))
		}
		if a.right {
			return 1
		}
		return -1
	})
}

// group returns where the right side's items with the keys of item i begin, and where
// those of other keys do.
func (w *walker) group(i, end int) (middle, next int) {
	first := w.items[i]
	for middle, next = i, i; next < end; next++ {
		other := &w.items[next]
		if compareParts(w.parts[first.from:first.to], w.parts[other.from:other.to]) != 0 {
			break
		}
		if !other.right {
			middle = next + 1
		}
	}
	return middle, next
}

// alike compares the items with the same keys: those of the left side from i on, those
// of the right side from middle on.
func (w *walker) alike(p *plan, l, r reflect.Value, i, middle, end int, f *Filter) {
	left, right := middle-i, end-middle
	at := func(list reflect.Value, n int) reflect.Value { return list.Index(w.items[n].at) }
	switch {
	case left <= 1 && right <= 1:
		var lv, rv reflect.Value
		lo, ro := absent, absent
		if left == 1 {
			lv, lo = at(l, i), there
		}
		if right == 1 {
			rv, ro = at(r, middle), there
		}
		w.compare(p.elem, lv, rv, lo, ro, f)
	case left >= 2 && right >= 2:
		equal := left == right
		for n := 0; equal && n < left; n++ {
			equal = sameItems(p.elem, at(l, i+n), at(r, middle+n))
		}
		if !equal {
			w.taken.add(w.steps)
		}
	case left >= 2:
		w.removed.add(w.steps)
		if right == 1 {
			w.compare(p.elem, reflect.Value{}, at(r, middle), absent, there, f)
		}
	default:
		w.taken.add(w.steps)
		if left == 1 {
			w.compare(p.elem, at(l, i), reflect.Value{}, there, absent, f)
		}
	}
}

// addItems notes the items of a list with their keys.
func (w *walker) addItems(p *plan, list reflect.Value, right bool) {
	for i := range list.Len() {
		from := len(w.parts)
		v := list.Index(i)
		if v.Kind() == reflect.Pointer {
			if v.IsNil() {
				w.err = ErrNoKeys
				return
			}
			v = v.Elem()
		}
		if p.form == byValue {
			w.parts = append(w.parts, partOf(v))
		}
		for k := range p.keys {
			if part, ok := p.keys[k].of(v); ok {
				w.parts = append(w.parts, part)
			}
		}
		if len(w.parts) == from {
			w.err = ErrNoKeys
			return
		}
		w.items = append(w.items, item{from, len(w.parts), right, i})
	}
}

// of returns the key of an item, ok unless it has none.
func (k *key) of(v reflect.Value) (part keyPart, ok bool) {
	for _, i := range k.index {
		v = v.Field(i)
	}
	if v.Kind() == reflect.Pointer {
		if !v.IsNil() {
			v = v.Elem()
		} else if k.def != nil {
			return *k.def, true
		} else {
			return part, false
		}
	} else if k.omit && v.IsZero() {
		if k.def == nil {
			return part, false
		}
		return *k.def, true
	}
	part = partOf(v)
	part.name = k.name
	return part, true
}

// partOf returns the value of a key.
func partOf(v reflect.Value) keyPart {
	switch v.Kind() {
	case reflect.String:
		return keyPart{kind: partText, text: v.String()}
	case reflect.Bool:
		n := int64(0)
		if v.Bool() {
			n = 1
		}
		return keyPart{kind: partBool, n: n}
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return keyPart{kind: partInteger, n: v.Int()}
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return keyPart{kind: partInteger, n: int64(v.Uint())} //nolint:gosec // as the library does
	case reflect.Float64:
		return keyPart{kind: partInteger, n: int64(v.Float())} // a default, read from JSON
	}
	return keyPart{kind: partText, text: v.String()}
}

// compareParts is the order in which items stand in a set.
func compareParts(a, b []keyPart) int {
	return slices.CompareFunc(a, b, func(x, y keyPart) int {
		return cmp.Or(cmp.Compare(x.name, y.name), cmp.Compare(x.kind, y.kind), cmp.Compare(x.n, y.n), cmp.Compare(x.text, y.text))
	})
}
