package ownership

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"strconv"
	"strings"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// errForm is returned when a set is not in the form that this package and upstream write.
var errForm = errors.New("a set of fields is not in its canonical form")

// Sets are added and subtracted in their stored form:
//
//	set     = "{" [ member { "," member } ] "}"
//	member  = element ":" set             an empty set: the element itself is in the set
//	        | `"."` ":" "{}"              first: the element above is, too
//	element = `"f:name"` | `"k:{\"key\":value}"` | `"v:value"`, sorted
//
// so that two sets are merged in one pass over both, like sorted lists.

// operation says what of two sets is wanted.
type operation bool

const (
	minus operation = false // what is in the first and not in the second
	union operation = true  // what is in any
)

// combine appends the result to out; nothing if the result is empty.
func combine(out []byte, op operation, a, b []byte) ([]byte, error) {
	x, y := scanner{s: a}, scanner{s: b}
	start := len(out)
	m := merger{out: out, op: op}
	if len(a) == 0 {
		x.s = emptySet
	}
	if len(b) == 0 {
		y.s = emptySet
	}
	m.children(&x, &y, x.open(), y.open())
	if x.bad || y.bad || m.bad || x.i != len(x.s) || y.i != len(y.s) {
		return out[:start], errForm
	}
	if len(m.out) == start+2 {
		return m.out[:start], nil
	}
	return m.out, nil
}

var emptySet = []byte("{}")

// A scanner reads a set.
type scanner struct {
	s   []byte
	i   int
	bad bool
}

func (c *scanner) at(b byte) bool { return c.i < len(c.s) && c.s[c.i] == b }

func (c *scanner) take(b byte) {
	if !c.at(b) {
		c.bad = true
		c.i = len(c.s)
		return
	}
	c.i++
}

// An entry is how a member begins.
type entry struct {
	element []byte // with quotes, nil at the end of the set
	self    bool   // the element above is a member: it came as "."
}

// open begins a set and returns its first element. self tells whether the element
// above is a member.
func (c *scanner) open() entry {
	c.take('{')
	if c.at('}') {
		c.i++
		return entry{self: true}
	}
	e := c.element()
	if string(e) != `"."` {
		return entry{element: e}
	}
	c.take('{')
	c.take('}')
	return entry{element: c.next(), self: true}
}

// next returns the next element of a set, nil at its end.
func (c *scanner) next() []byte {
	if c.at('}') {
		c.i++
		return nil
	}
	c.take(',')
	if c.bad {
		return nil
	}
	return c.element()
}

// element reads a name and its colon.
func (c *scanner) element() []byte {
	start := c.i
	c.take('"')
	for c.i < len(c.s) && c.s[c.i] != '"' {
		if c.s[c.i] == '\\' {
			c.i++
		}
		c.i++
	}
	c.take('"')
	end := c.i
	c.take(':')
	if c.bad {
		return nil
	}
	return c.s[start:end]
}

// skip passes over a set.
func (c *scanner) skip() {
	depth := 0
	for c.i < len(c.s) {
		switch c.s[c.i] {
		case '{':
			depth++
		case '}':
			depth--
		case '"':
			for c.i++; c.i < len(c.s) && c.s[c.i] != '"'; c.i++ {
				if c.s[c.i] == '\\' {
					c.i++
				}
			}
		}
		c.i++
		if depth == 0 {
			return
		}
	}
	c.bad = true
}

type merger struct {
	out []byte
	op  operation
	bad bool
}

// children writes what is wanted of two sets that are open at x and y.
func (m *merger) children(x, y *scanner, a, b entry) {
	m.out = append(m.out, '{')
	m.rest(x, y, a.element, b.element)
	m.out = append(m.out, '}')
}

func (m *merger) rest(x, y *scanner, ka, kb []byte) {
	for (ka != nil || kb != nil) && !x.bad && !y.bad && !m.bad {
		order := -1
		if ka == nil {
			order = 1
		} else if kb != nil {
			order = m.compare(ka, kb)
		}
		switch {
		case order < 0:
			m.copy(x, ka)
			ka = x.next()
		case order > 0:
			if m.op == union {
				m.copy(y, kb)
			} else {
				y.skip()
			}
			kb = y.next()
		default:
			m.both(x, y, ka)
			ka, kb = x.next(), y.next()
		}
	}
}

// copy takes a member of one set over.
func (m *merger) copy(c *scanner, element []byte) {
	start := c.i
	c.skip()
	m.name(element)
	m.out = append(m.out, c.s[start:c.i]...)
}

func (m *merger) name(element []byte) {
	if m.out[len(m.out)-1] != '{' {
		m.out = append(m.out, ',')
	}
	m.out = append(append(m.out, element...), ':')
}

// both writes what is wanted of an element that is in both sets, or above members of both.
func (m *merger) both(x, y *scanner, element []byte) {
	before := len(m.out)
	m.name(element)
	a, b := x.open(), y.open()
	self := a.self && !b.self
	if m.op == union {
		self = a.self || b.self
	}
	inner := len(m.out)
	m.out = append(m.out, '{')
	if self {
		m.out = append(m.out, `".":{}`...)
	}
	bare := len(m.out)
	m.rest(x, y, a.element, b.element)
	if len(m.out) > bare {
		m.out = append(m.out, '}')
		return
	}
	if self {
		m.out = append(m.out[:inner], '{', '}')
		return
	}
	m.out = m.out[:before]
}

// compare is the order of two elements.
func (m *merger) compare(a, b []byte) int {
	if bytes.Equal(a, b) {
		return 0
	}
	if len(a) < 4 || len(b) < 4 || a[2] != ':' || b[2] != ':' {
		m.bad = true
		return 0
	}
	if a[1] != b[1] {
		return cmp.Compare(strings.IndexByte("fkvi", a[1]), strings.IndexByte("fkvi", b[1]))
	}
	ca, cb := a[3:len(a)-1], b[3:len(b)-1]
	if a[1] == 'f' {
		if bytes.IndexByte(ca, '\\') < 0 && bytes.IndexByte(cb, '\\') < 0 {
			return bytes.Compare(ca, cb)
		}
		return m.slowCompare(a, b)
	}
	for len(ca) > 0 && len(cb) > 0 {
		ta, ra := token(ca)
		tb, rb := token(cb)
		if ta.kind == other || tb.kind == other {
			return m.slowCompare(a, b)
		}
		if c := cmp.Or(cmp.Compare(ta.kind, tb.kind), cmp.Compare(ta.n, tb.n), bytes.Compare(ta.text, tb.text)); c != 0 {
			return c
		}
		ca, cb = ra, rb
	}
	return m.slowCompare(a, b) // one is longer
}

// A part is a piece of the JSON inside an element: {, }, comma, colon, a number, a string.
type part struct {
	kind partForm
	n    int64
	text []byte
}

type partForm uint8

const (
	end    partForm = iota // the end of the keys comes before a further one
	mark                   // comma, colon, brace
	number                 // numbers come before strings
	word
	other
)

// token reads a piece of escaped JSON without further escapes inside.
func token(s []byte) (part, []byte) {
	switch c := s[0]; {
	case c == '}':
		return part{kind: end}, s[1:]
	case c == ',' || c == ':' || c == '{':
		return part{kind: mark, n: int64(c)}, s[1:]
	case c == '\\':
		close := bytes.IndexByte(s[1:], '\\')
		if !bytes.HasPrefix(s, []byte(`\"`)) || close < 0 || !bytes.HasPrefix(s[1+close:], []byte(`\"`)) {
			return part{kind: other}, nil
		}
		return part{kind: word, text: s[2 : 1+close]}, s[3+close:]
	case c >= '0' && c <= '9' || c == '-':
		length := 1
		for length < len(s) && s[length] >= '0' && s[length] <= '9' {
			length++
		}
		n, err := strconv.ParseInt(string(s[:length]), 10, 64)
		if err != nil || length < len(s) && s[length] != ',' && s[length] != '}' {
			return part{kind: other}, nil
		}
		return part{kind: number, n: n}, s[length:]
	}
	return part{kind: other}, nil
}

// slowCompare lets the library say what comes first.
func (m *merger) slowCompare(a, b []byte) int {
	var x, y string
	if json.Unmarshal(a, &x) != nil || json.Unmarshal(b, &y) != nil {
		m.bad = true
		return 0
	}
	p, errP := fieldpath.DeserializePathElement(x)
	q, errQ := fieldpath.DeserializePathElement(y)
	if errP != nil || errQ != nil {
		m.bad = true
		return 0
	}
	return p.Compare(q)
}

// canonical returns a set as this package writes it, however a client has written it.
func canonical(raw []byte) ([]byte, error) {
	var s fieldpath.Set
	if err := s.FromJSON(bytes.NewReader(raw)); err != nil {
		return nil, err
	}
	return s.ToJSON()
}
