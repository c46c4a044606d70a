package route

import (
	"net"
	"net/url"
	"strconv"
	"strings"

	"github.com/periplus/periplus/l7"
)

// Rewrite returns the request target after a rewrite; the query stays.
func Rewrite(rw *l7.PathRewrite, m *l7.PathMatch, target string) string {
	if rw == nil || target == "*" {
		return target
	}
	path, query, hasQuery := strings.Cut(target, "?")
	path = rewritePath(rw, m, path)
	if hasQuery {
		return path + "?" + query
	}
	return path
}

func rewritePath(rw *l7.PathRewrite, m *l7.PathMatch, path string) string {
	switch {
	case rw.Full != nil:
		path = *rw.Full
	case rw.Prefix != nil:
		path = replacePrefix(*rw.Prefix, m, path)
	case rw.Regex != nil:
		path = substitute(rw, path)
	}
	if path == "" || path[0] != '/' {
		path = "/" + path
	}
	return path
}

// replacePrefix replaces what the route has matched. With segments, "/" and "" both
// mean that the prefix goes: /a → / makes /b of /a/b.
func replacePrefix(with string, m *l7.PathMatch, path string) string {
	switch m.Kind {
	case l7.PathSegments:
		v := strings.TrimSuffix(m.Value, "/")
		if len(path) < len(v) {
			return path
		}
		rest := path[len(v):]
		with = strings.TrimSuffix(with, "/")
		if rest == "" || rest == "/" && with != "" && m.Value == "/" {
			return with
		}
		return with + rest
	case l7.PathPrefix, l7.PathExact:
		if len(path) >= len(m.Value) {
			return with + path[len(m.Value):]
		}
	}
	return path
}

// substitute replaces the first match; $1 and \1 are groups.
func substitute(rw *l7.PathRewrite, path string) string {
	loc := rw.Regex.FindStringSubmatchIndex(path)
	if loc == nil {
		return path
	}
	out := []byte(path[:loc[0]])
	s := rw.Substitution
	for i := 0; i < len(s); i++ {
		if (s[i] == '$' || s[i] == '\\') && i+1 < len(s) && s[i+1] >= '0' && s[i+1] <= '9' {
			g := int(s[i+1] - '0')
			i++
			if 2*g+1 < len(loc) && loc[2*g] >= 0 {
				out = append(out, path[loc[2*g]:loc[2*g+1]]...)
			}
			continue
		}
		out = append(out, s[i])
	}
	return string(out) + path[loc[1]:]
}

// Location returns where a redirect leads, as an absolute URL.
func Location(r *l7.Redirect, m *l7.PathMatch, q *l7.Request) string {
	scheme := r.Scheme
	if scheme == "" {
		scheme = q.Scheme
	}
	host, port := r.Host, r.Port
	if host == "" {
		host = q.Host()
	}
	if port == 0 && r.Scheme == "" {
		// The port of the request stays with its scheme.
		if _, p, err := net.SplitHostPort(q.Authority); err == nil {
			port, _ = strconv.Atoi(p)
		}
	}
	if port != 0 && (scheme != "http" || port != 80) && (scheme != "https" || port != 443) {
		host += ":" + strconv.Itoa(port)
	}
	target := Rewrite(r.Path, m, q.Path)
	if r.StripQuery {
		target, _, _ = strings.Cut(target, "?")
	}
	if target == "*" {
		target = "/"
	}
	return scheme + "://" + host + target
}

// Normalize resolves "." and ".." and escapes of unreserved characters in the path of
// a target, and merges slashes if asked to. It returns false for a path that climbs
// above its root or has a malformed escape.
func Normalize(target string, merge bool) (string, bool) {
	if target == "" || target[0] != '/' {
		return target, true
	}
	path, query, hasQuery := strings.Cut(target, "?")
	if strings.IndexByte(path, '%') >= 0 {
		var ok bool
		if path, ok = unescapeUnreserved(path); !ok {
			return target, false
		}
	}
	if strings.Contains(path, "/.") {
		var ok bool
		if path, ok = removeDots(path); !ok {
			return target, false
		}
	}
	if merge {
		for strings.Contains(path, "//") {
			path = strings.ReplaceAll(path, "//", "/")
		}
	}
	if hasQuery {
		return path + "?" + query, true
	}
	return path, true
}

func unescapeUnreserved(p string) (string, bool) {
	var b strings.Builder
	for i := 0; i < len(p); i++ {
		if p[i] != '%' {
			b.WriteByte(p[i])
			continue
		}
		if i+2 >= len(p) {
			return p, false
		}
		u, err := url.PathUnescape(p[i : i+3])
		if err != nil {
			return p, false
		}
		c := u[0]
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("-._~", c) >= 0 {
			b.WriteByte(c)
		} else {
			b.WriteString(strings.ToUpper(p[i : i+3]))
		}
		i += 2
	}
	return b.String(), true
}

// removeDots is RFC 3986 §5.2.4.
func removeDots(p string) (string, bool) {
	parts := strings.Split(p[1:], "/")
	out := parts[:0]
	for i, s := range parts {
		last := i == len(parts)-1
		switch s {
		case ".":
			if last {
				out = append(out, "")
			}
		case "..":
			if len(out) == 0 {
				return p, false
			}
			out = out[:len(out)-1]
			if last {
				out = append(out, "")
			}
		default:
			out = append(out, s)
		}
	}
	return "/" + strings.Join(out, "/"), true
}
