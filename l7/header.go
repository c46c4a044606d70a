package l7

import "strings"

// A Header is the fields of a message in the order in which they came. Names are
// compared without regard to case and passed on as they were written.
type Header []Field

// A Field is one line of a Header.
type Field struct{ Name, Value string }

// Get returns the first value of a field, or "".
func (h Header) Get(name string) string {
	v, _ := h.Lookup(name)
	return v
}

// Lookup returns the first value of a field and whether there is one.
func (h Header) Lookup(name string) (string, bool) {
	for i := range h {
		if len(h[i].Name) == len(name) && strings.EqualFold(h[i].Name, name) {
			return h[i].Value, true
		}
	}
	return "", false
}

// Has reports whether there is such a field.
func (h Header) Has(name string) bool {
	_, ok := h.Lookup(name)
	return ok
}

// Values returns all values of a field.
func (h Header) Values(name string) []string {
	var out []string
	for i := range h {
		if len(h[i].Name) == len(name) && strings.EqualFold(h[i].Name, name) {
			out = append(out, h[i].Value)
		}
	}
	return out
}

// Joined returns all values of a field, joined by commas, and whether there are any.
func (h Header) Joined(name string) (string, bool) {
	first, found := "", false
	for i := range h {
		if len(h[i].Name) != len(name) || !strings.EqualFold(h[i].Name, name) {
			continue
		}
		if !found {
			first, found = h[i].Value, true
			continue
		}
		first += "," + h[i].Value
	}
	return first, found
}

// Add appends a field.
func (h *Header) Add(name, value string) { *h = append(*h, Field{name, value}) }

// Set replaces all fields of a name by one, at the place of the first.
func (h *Header) Set(name, value string) {
	found := false
	out := (*h)[:0]
	for _, f := range *h {
		if len(f.Name) == len(name) && strings.EqualFold(f.Name, name) {
			if found {
				continue
			}
			found = true
			f.Value = value
		}
		out = append(out, f)
	}
	if !found {
		out = append(out, Field{name, value})
	}
	*h = out
}

// Del removes all fields of a name.
func (h *Header) Del(name string) {
	for i := range *h {
		if f := (*h)[i]; len(f.Name) == len(name) && strings.EqualFold(f.Name, name) {
			out := (*h)[:i]
			for _, f := range (*h)[i+1:] {
				if len(f.Name) != len(name) || !strings.EqualFold(f.Name, name) {
					out = append(out, f)
				}
			}
			*h = out
			return
		}
	}
}

// Clone returns a copy with room for some more fields.
func (h Header) Clone() Header {
	return append(make(Header, 0, len(h)+4), h...)
}

// HasToken reports whether a comma-separated field has a token, without regard to case.
func (h Header) HasToken(name, token string) bool {
	for i := range h {
		if len(h[i].Name) != len(name) || !strings.EqualFold(h[i].Name, name) {
			continue
		}
		for rest := h[i].Value; rest != ""; {
			var t string
			t, rest, _ = strings.Cut(rest, ",")
			if strings.EqualFold(strings.Trim(t, " \t"), token) {
				return true
			}
		}
	}
	return false
}

// Cookie returns the value of a cookie and whether there is one.
func (h Header) Cookie(name string) (string, bool) {
	for i := range h {
		if !strings.EqualFold(h[i].Name, "cookie") {
			continue
		}
		for rest := h[i].Value; rest != ""; {
			var pair string
			pair, rest, _ = strings.Cut(rest, ";")
			k, v, ok := strings.Cut(strings.TrimSpace(pair), "=")
			if ok && k == name {
				return strings.Trim(v, `"`), true
			}
		}
	}
	return "", false
}
