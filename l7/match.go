package l7

import (
	"regexp"
	"strings"
)

// A StringMatch matches a text if the one field that is set does
// (envoy.type.matcher.v3.StringMatcher). The zero value matches every text.
type StringMatch struct {
	Kind  MatchKind
	Value string
	// Regex finds a match; see Anchored.
	Regex      *regexp.Regexp
	IgnoreCase bool
}

// A MatchKind says how a StringMatch compares.
type MatchKind int

// Kinds of StringMatch.
const (
	MatchAny MatchKind = iota
	MatchExact
	MatchPrefix
	MatchSuffix
	MatchContains
	MatchRegex
)

// Matches reports whether s matches.
func (m *StringMatch) Matches(s string) bool {
	v := m.Value
	switch m.Kind {
	case MatchAny:
		return true
	case MatchRegex:
		return m.Regex != nil && m.Regex.MatchString(s)
	case MatchExact:
		if m.IgnoreCase {
			return strings.EqualFold(s, v)
		}
		return s == v
	case MatchPrefix:
		return len(s) >= len(v) && m.equal(s[:len(v)], v)
	case MatchSuffix:
		return len(s) >= len(v) && m.equal(s[len(s)-len(v):], v)
	case MatchContains:
		if m.IgnoreCase {
			return strings.Contains(strings.ToLower(s), strings.ToLower(v))
		}
		return strings.Contains(s, v)
	default:
		return false
	}
}

func (m *StringMatch) equal(a, b string) bool {
	if m.IgnoreCase {
		return strings.EqualFold(a, b)
	}
	return a == b
}

// Anchored compiles an expression that must match the whole text, as xDS and the
// Gateway API want it.
func Anchored(expression string) (*regexp.Regexp, error) {
	return regexp.Compile(`^(?:` + expression + `)$`)
}

// A HeaderMatch matches a request's header field. Several fields of one name are
// joined by commas before they are compared (RFC 9110 §5.3).
type HeaderMatch struct {
	Name string
	// Present asks only whether the field is there.
	Present bool
	Value   StringMatch
	Invert  bool
}

// Matches reports whether h matches.
func (m *HeaderMatch) Matches(h Header) bool {
	v, ok := h.Joined(m.Name)
	if m.Present {
		return ok != m.Invert
	}
	if !ok {
		return m.Invert
	}
	return m.Value.Matches(v) != m.Invert
}

// A QueryMatch matches the first value of a query parameter.
type QueryMatch struct {
	Name    string
	Present bool
	Value   StringMatch
}
