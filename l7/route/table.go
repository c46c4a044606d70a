package route

import (
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/periplus/periplus/l7"
)

// A Table is a compiled route configuration.
type Table struct {
	config   *l7.RouteConfiguration
	exact    map[string]*host // by domain in lower case
	suffixes []wildcard       // "*.example" as ".example", the longest first
	prefixes []wildcard       // "a.*" as "a.", the longest first
	any      *host            // "*"
	ports    bool             // some domain has a port
}

type wildcard struct {
	text string
	host *host
}

// A host is a compiled virtual host.
type host struct {
	config *l7.VirtualHost
	routes []*l7.Route
}

// Compile prepares a configuration for matching.
func Compile(c *l7.RouteConfiguration) *Table {
	t := &Table{config: c, exact: map[string]*host{}}
	for _, v := range c.VirtualHosts {
		h := &host{config: v, routes: v.Routes}
		for _, d := range v.Domains {
			d = strings.ToLower(d)
			if hasPort(d) {
				t.ports = true
			}
			switch {
			case d == "*":
				t.any = h
			case strings.HasPrefix(d, "*"):
				t.suffixes = append(t.suffixes, wildcard{d[1:], h})
			case strings.HasSuffix(d, "*"):
				t.prefixes = append(t.prefixes, wildcard{d[:len(d)-1], h})
			default:
				t.exact[d] = h
			}
		}
	}
	longest := func(a, b wildcard) int { return len(b.text) - len(a.text) }
	slices.SortStableFunc(t.suffixes, longest)
	slices.SortStableFunc(t.prefixes, longest)
	return t
}

// Config returns what was compiled.
func (t *Table) Config() *l7.RouteConfiguration { return t.config }

func hasPort(domain string) bool { return l7.HostOnly(domain) != domain }

// Match finds the virtual host and the route of a request; nil: there is none.
func (t *Table) Match(x *l7.Exchange) (*l7.VirtualHost, *l7.Route) {
	h := t.find(x.Request.Authority)
	if h == nil {
		return nil, nil
	}
	path := x.Request.PathOnly()
	for _, r := range h.routes {
		if matches(&r.Match, x, path) {
			return h.config, r
		}
	}
	return h.config, nil
}

func (t *Table) find(authority string) *host {
	if t.ports {
		if name := lower(authority); hasPort(name) {
			if h := t.exact[name]; h != nil {
				return h
			}
		}
	}
	return t.lookup(lower(l7.HostOnly(authority)))
}

func (t *Table) lookup(name string) *host {
	// A name with a trailing dot is the same name.
	if n := len(name); n > 1 && name[n-1] == '.' {
		name = name[:n-1]
	}
	if h := t.exact[name]; h != nil {
		return h
	}
	for _, w := range t.suffixes {
		if len(name) > len(w.text) && strings.HasSuffix(name, w.text) {
			return w.host
		}
	}
	for _, w := range t.prefixes {
		if len(name) > len(w.text) && strings.HasPrefix(name, w.text) {
			return w.host
		}
	}
	return t.any
}

// lower is strings.ToLower without work for what is lower case already.
func lower(s string) string {
	for i := 0; i < len(s); i++ {
		if c := s[i]; c >= 'A' && c <= 'Z' {
			return strings.ToLower(s)
		}
	}
	return s
}

func matches(m *l7.RouteMatch, x *l7.Exchange, path string) bool {
	if !MatchPath(&m.Path, path) {
		return false
	}
	if m.Method != "" && m.Method != x.Request.Method {
		return false
	}
	if m.Authority != nil && !m.Authority.Matches(x.Request.Authority) {
		return false
	}
	for i := range m.Headers {
		if !matchHeader(&m.Headers[i], &x.Request) {
			return false
		}
	}
	for i := range m.Query {
		q := &m.Query[i]
		v, ok := queryValue(x.Request.RawQuery(), q.Name)
		if !ok || !q.Present && !q.Value.Matches(v) {
			return false
		}
	}
	if m.Fraction != 0 && rand.Uint32N(1_000_000) >= m.Fraction {
		return false
	}
	return m.Func == nil || m.Func(x)
}

// matchHeader also knows the names of HTTP/2 that are no fields here.
func matchHeader(m *l7.HeaderMatch, r *l7.Request) bool {
	v := ""
	switch {
	case m.Name == ":method":
		v = r.Method
	case m.Name == ":authority" || strings.EqualFold(m.Name, "host"):
		v = r.Authority
	case m.Name == ":path":
		v = r.Path
	case m.Name == ":scheme":
		v = r.Scheme
	default:
		return m.Matches(r.Header)
	}
	return (m.Present || m.Value.Matches(v)) != m.Invert
}

// MatchPath reports whether a path, without its query, matches.
func MatchPath(m *l7.PathMatch, path string) bool {
	v := m.Value
	switch m.Kind {
	case l7.PathAny:
		return true
	case l7.PathExact:
		return path == v || m.IgnoreCase && strings.EqualFold(path, v)
	case l7.PathPrefix:
		return hasPrefix(path, v, m.IgnoreCase)
	case l7.PathSegments:
		v = strings.TrimSuffix(v, "/")
		return hasPrefix(path, v, m.IgnoreCase) && (len(path) == len(v) || path[len(v)] == '/')
	case l7.PathRegex:
		return m.Regex.MatchString(path)
	default:
		return false
	}
}

func hasPrefix(s, prefix string, ignoreCase bool) bool {
	if len(s) < len(prefix) {
		return false
	}
	return s[:len(prefix)] == prefix || ignoreCase && strings.EqualFold(s[:len(prefix)], prefix)
}
