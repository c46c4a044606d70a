package ownership_test

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/value"

	"github.com/periplus/periplus/apiserver/ownership"
)

// element returns a random element, often one that others are like.
func (m maker) element() fieldpath.PathElement {
	switch m.IntN(8) {
	case 0:
		return fieldpath.KeyElementByFields("name", m.word())
	case 1:
		return fieldpath.KeyElementByFields("port", int64(m.IntN(12)), "protocol", m.word())
	case 2:
		return fieldpath.KeyElementByFields("port", int64(m.IntN(12)))
	case 3:
		return fieldpath.ValueElement(value.NewValueInterface(m.word()))
	case 4:
		return fieldpath.ValueElement(value.NewValueInterface([]any{int64(m.IntN(12)), true, 1.5, "x"}[m.IntN(4)]))
	}
	return fieldpath.FieldNameElement(m.word())
}

func (m maker) set() *fieldpath.Set {
	s := fieldpath.NewSet()
	for range m.IntN(20) {
		var p fieldpath.Path
		for range 1 + m.IntN(4) {
			p = append(p, m.element())
		}
		s.Insert(p)
	}
	return s
}

// TestSets compares sums and differences of sets with the library's.
func TestSets(t *testing.T) {
	t.Parallel()
	m := maker{rand.New(rand.NewPCG(1, 2))} //nolint:gosec // the same each time
	for range 1500 {
		a, b := m.set(), m.set()
		for name, test := range map[string]struct {
			got  func(a, b []byte) ([]byte, error)
			want *fieldpath.Set
		}{"union": {ownership.Union, a.Union(b)}, "minus": {ownership.Minus, a.Difference(b)}} {
			x, y := []byte(written(t, a)), []byte(written(t, b))
			got, err := test.got(x, y)
			if want := written(t, test.want); err != nil || string(got) != want {
				t.Fatalf("%s: %v\n%s\n%s\ngot  %s\nwant %s", name, err, x, y, got, want)
			}
		}
	}
}

// FuzzSets: whatever is stored, combining it does not panic, and what comes of sets that the
// library has written is what the library says.
func FuzzSets(f *testing.F) {
	f.Add([]byte(`{"f:a":{".":{},"f:b":{}},"k:{\"name\":\"x\"}":{}}`), []byte(`{"f:a":{}}`))
	f.Add([]byte(`{"v:1":{}}`), []byte(`{"v:\"a\"":{},"v:true":{}}`))
	f.Fuzz(func(t *testing.T, a, b []byte) {
		sum, err := ownership.Union(a, b)
		if err != nil {
			return
		}
		var x, y fieldpath.Set
		if x.FromJSON(bytes.NewReader(a)) != nil || y.FromJSON(bytes.NewReader(b)) != nil || written(t, &x) != string(a) || written(t, &y) != string(b) {
			return
		}
		if want := written(t, x.Union(&y)); string(sum) != want {
			t.Errorf("union of %s and %s: %s, want %s", a, b, sum, want)
		}
		if got, err := ownership.Minus(a, b); err != nil || string(got) != written(t, x.Difference(&y)) {
			t.Errorf("%s minus %s: %s %v", a, b, got, err)
		}
	})
}
