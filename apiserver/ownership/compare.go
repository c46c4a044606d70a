package ownership

import (
	"cmp"
	"errors"
	"reflect"
	"slices"
	"sync"
)

// ErrNoKeys is returned when an item of a list has none of the keys that tell it
// from the others, so that its fields have no names.
var ErrNoKeys = errors.New("an item of a list has none of its keys")

// A Change is what differs between two objects: sets in their stored form, empty
// where nothing does. Taken holds what was added or modified.
type Change struct{ Taken, Removed []byte }

// side is the state of a value in one of the two objects.
type side uint8

const (
	absent side = iota // no such field
	null               // a field without a value
	there
)

// A walker compares two objects.
type walker struct {
	taken, removed writer
	steps          []step
	names          []string // scratch: the keys of maps
	items          []item   // scratch: the items of lists
	parts          []keyPart
	err            error
}

var walkers = sync.Pool{New: func() any { return new(walker) }}

// Compare compares two objects of a type that the table covers, without the fields
// that are never owned and those that filter leaves out. The sets are appended to those of into.
func Compare(before, after any, filter *Filter, into *Change) error {
	l, r := reflect.ValueOf(before).Elem(), reflect.ValueOf(after).Elem()
	if l.Type() != r.Type() {
		return errors.New("objects of different types: " + l.Type().String() + ", " + r.Type().String())
	}
	w := walkers.Get().(*walker)
	defer w.free()
	w.taken.out, w.removed.out = into.Taken[:0], into.Removed[:0]
	w.structs(known.of(l.Type(), byField), l, r, there, there, filter.within())
	into.Taken, into.Removed = w.taken.end(), w.removed.end()
	return w.err
}

func (w *walker) free() {
	clear(w.steps[:cap(w.steps)])
	clear(w.names[:cap(w.names)])
	clear(w.items[:cap(w.items)])
	clear(w.parts[:cap(w.parts)])
	*w = walker{steps: w.steps[:0], names: w.names[:0], items: w.items[:0], parts: w.parts[:0]}
	walkers.Put(w)
}

// under compares a part whose path is one step longer.
func (w *walker) under(s step, p *plan, l, r reflect.Value, ls, rs side, f *Filter) {
	w.steps = append(w.steps, s)
	w.compare(p, l, r, ls, rs, f)
	w.back()
}

func (w *walker) back() {
	depth := len(w.steps) - 1
	w.taken.leave(depth)
	w.removed.leave(depth)
	w.steps = w.steps[:depth]
}

// settle follows a pointer and tells null from a value.
func settle(p *plan, v reflect.Value, s side) (reflect.Value, side) {
	if s != there {
		return v, s
	}
	if v.Kind() == reflect.Pointer {
		if v.IsNil() {
			return v, null
		}
		v = v.Elem()
	}
	switch p.form {
	case octets, oneList, byItem, byValue, oneMap, byMapKey:
		if v.IsNil() {
			return v, null
		}
	case instant, fineInstant, foreign:
		if isNull(p, v) {
			return v, null
		}
	}
	return v, there
}

// compare compares two values at the path of w.steps, at least one of which is not absent.
func (w *walker) compare(p *plan, l, r reflect.Value, ls, rs side, f *Filter) {
	l, ls = settle(p, l, ls)
	r, rs = settle(p, r, rs)
	// Where neither holds anything, null and empty differ as values do.
	if p.form.whole() || (ls != there || empty(p, l)) && (rs != there || empty(p, r)) {
		switch {
		case ls == absent:
			w.taken.add(w.steps)
		case rs == absent:
			w.removed.add(w.steps)
		case ls != rs, ls == there && !same(p, l, r):
			w.taken.add(w.steps)
		}
		return
	}
	if ls == absent {
		w.taken.addParent(w.steps)
	} else if rs == absent {
		w.removed.addParent(w.steps)
	}
	switch p.form {
	case byField:
		w.structs(p, l, r, ls, rs, f)
	case byMapKey:
		w.maps(p, l, r, ls, rs)
	default:
		w.lists(p, l, r, ls, rs, f)
	}
}

// structs compares field by field. A side that is not there has no fields.
func (w *walker) structs(p *plan, l, r reflect.Value, ls, rs side, f *Filter) {
	for i := range p.parts() {
		part := &p.fields[i]
		below, keep := f.field(part.name)
		if !keep {
			continue
		}
		var lv, rv reflect.Value
		lo, ro := absent, absent
		if ls == there {
			if lv = part.get(l); !part.absent(lv) {
				lo = there
			}
		}
		if rs == there {
			if rv = part.get(r); !part.absent(rv) {
				ro = there
			}
		}
		if lo == absent && ro == absent {
			continue
		}
		w.under(step{label: part.label}, part.plan, lv, rv, lo, ro, below)
	}
}

// maps compares key by key, in their order.
func (w *walker) maps(p *plan, l, r reflect.Value, ls, rs side) {
	if ls == there && rs == there && l.UnsafePointer() == r.UnsafePointer() {
		return
	}
	if p.elem.form == text && w.textMaps(l, r, ls, rs) {
		return
	}
	start := len(w.names)
	if ls == there {
		for it := l.MapRange(); it.Next(); {
			w.names = append(w.names, it.Key().String())
		}
	}
	if rs == there {
		for it := r.MapRange(); it.Next(); {
			name := it.Key().String()
			if ls != there || !l.MapIndex(it.Key()).IsValid() {
				w.names = append(w.names, name)
			}
		}
	}
	slices.Sort(w.names[start:])
	keyType := p.typ.Key()
	for i := start; i < len(w.names); i++ {
		name := w.names[i]
		k := reflect.ValueOf(name).Convert(keyType)
		var lv, rv reflect.Value
		lo, ro := absent, absent
		if ls == there {
			if lv = l.MapIndex(k); lv.IsValid() {
				lo = there
			}
		}
		if rs == there {
			if rv = r.MapIndex(k); rv.IsValid() {
				ro = there
			}
		}
		w.under(step{name: name}, p.elem, lv, rv, lo, ro, nil)
	}
	w.names = w.names[:start]
}

// textMaps does the same for the maps that most objects have: labels, annotations, data.
func (w *walker) textMaps(l, r reflect.Value, ls, rs side) bool {
	var lm, rm map[string]string
	var ok bool
	if ls == there {
		if lm, ok = l.Interface().(map[string]string); !ok {
			return false
		}
	}
	if rs == there {
		if rm, ok = r.Interface().(map[string]string); !ok {
			return false
		}
	}
	start := len(w.names)
	for name, v := range lm {
		if other, ok := rm[name]; !ok || other != v {
			w.names = append(w.names, name)
		}
	}
	for name := range rm {
		if _, ok := lm[name]; !ok {
			w.names = append(w.names, name)
		}
	}
	slices.Sort(w.names[start:])
	for _, name := range w.names[start:] {
		w.steps = append(w.steps, step{name: name})
		if _, ok := rm[name]; ok {
			w.taken.add(w.steps)
		} else {
			w.removed.add(w.steps)
		}
		w.back()
	}
	w.names = w.names[:start]
	return true
}

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
