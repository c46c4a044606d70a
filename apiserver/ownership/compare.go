package ownership

import (
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
