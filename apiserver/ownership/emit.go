package ownership

import (
	"bytes"
	"strconv"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/value"
)

// A step is one element of a path.
type step struct {
	label string    // of a field of a struct, as written
	name  string    // the key of a map, without label
	parts []keyPart // of an item: its keys, or the value itself without a name
}

// append writes the step as it stands in a set, with a colon.
func (s *step) append(out []byte) []byte {
	switch {
	case s.label != "":
		return append(out, s.label...)
	case s.parts == nil:
		if !plainText(s.name) {
			name := s.name
			return appendElement(out, fieldpath.PathElement{FieldName: &name})
		}
		out = append(out, `"f:`...)
		out = append(out, s.name...)
		return append(out, `":`...)
	}
	for i := range s.parts {
		if p := &s.parts[i]; p.kind == partText && !plainText(p.text) {
			return appendElement(out, s.element())
		}
	}
	if s.parts[0].name == "" {
		out = s.parts[0].append(append(out, `"v:`...))
		return append(out, `":`...)
	}
	out = append(out, `"k:{`...)
	for i := range s.parts {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(out, `\"`...)
		out = append(out, s.parts[i].name...)
		out = append(out, `\":`...)
		out = s.parts[i].append(out)
	}
	return append(out, `}":`...)
}

// element is the step as the library has it.
func (s *step) element() fieldpath.PathElement {
	if s.parts[0].name == "" {
		v := s.parts[0].value()
		return fieldpath.PathElement{Value: &v}
	}
	list := value.FieldList{}
	for i := range s.parts {
		list = append(list, value.Field{Name: s.parts[i].name, Value: s.parts[i].value()})
	}
	return fieldpath.PathElement{Key: &list}
}

// appendElement lets the library write what has to be escaped.
func appendElement(out []byte, e fieldpath.PathElement) []byte {
	data, err := fieldpath.NewSet(fieldpath.Path{e}).ToJSON()
	if err != nil {
		return append(out, `"f:":`...) // cannot happen: the element has one kind
	}
	return append(out, data[1:bytes.LastIndexByte(data, ':')+1]...)
}

// plainText reports whether s stands in JSON as it is, also inside a string inside a string.
func plainText(s string) bool {
	for i := range len(s) {
		switch c := s[i]; {
		case c < ' ', c >= 0x7f, c == '"', c == '\\', c == '<', c == '>', c == '&':
			return false
		}
	}
	return true
}

// A keyPart is the value of a key of an item, or of an item of a set.
type keyPart struct {
	name string
	kind partKind
	text string
	n    int64
}

type partKind uint8

// In the order in which values of different kinds are sorted.
const (
	partInteger partKind = iota
	partText
	partBool
)

func (p *keyPart) append(out []byte) []byte {
	switch p.kind {
	case partInteger:
		return strconv.AppendInt(out, p.n, 10)
	case partBool:
		return strconv.AppendBool(out, p.n != 0)
	}
	out = append(out, `\"`...)
	out = append(out, p.text...)
	return append(out, `\"`...)
}

func (p *keyPart) value() value.Value {
	switch p.kind {
	case partInteger:
		return value.NewValueInterface(p.n)
	case partBool:
		return value.NewValueInterface(p.n != 0)
	}
	return value.NewValueInterface(p.text)
}

// A writer writes a set in the order in which its paths come. Elements above a path
// are written when the first path below them is.
type writer struct {
	out  []byte
	open int // how many of the walker's steps are written
}

// add adds the path that steps lead to.
func (w *writer) add(steps []step) {
	w.enter(steps[:len(steps)-1])
	w.comma()
	w.out = append(steps[len(steps)-1].append(w.out), '{', '}')
}

// addParent adds the path that steps lead to, which others below it may follow.
func (w *writer) addParent(steps []step) {
	w.enter(steps)
	w.out = append(w.out, `".":{}`...)
}

// enter opens what is not yet open.
func (w *writer) enter(steps []step) {
	if len(w.out) == 0 {
		w.out = append(w.out, '{')
	}
	for ; w.open < len(steps); w.open++ {
		w.comma()
		w.out = append(steps[w.open].append(w.out), '{')
	}
}

func (w *writer) comma() {
	if w.out[len(w.out)-1] != '{' {
		w.out = append(w.out, ',')
	}
}

// leave closes what is open below depth.
func (w *writer) leave(depth int) {
	const alone = `{".":{}`
	for ; w.open > depth; w.open-- {
		if bytes.HasSuffix(w.out, []byte(alone)) {
			w.out = w.out[:len(w.out)-len(alone)+1]
		}
		w.out = append(w.out, '}')
	}
}

// end returns the set.
func (w *writer) end() []byte {
	w.leave(0)
	if len(w.out) > 0 {
		w.out = append(w.out, '}')
	}
	return w.out
}
