package route_test

import (
	"regexp"
	"testing"

	"github.com/periplus/periplus/l7"
	"github.com/periplus/periplus/l7/route"
)

func exchange(authority, path string, header ...l7.Field) *l7.Exchange {
	return &l7.Exchange{Request: l7.Request{Method: "GET", Scheme: "http", Authority: authority, Path: path, Header: header}}
}

func TestDomains(t *testing.T) {
	t.Parallel()
	c := &l7.RouteConfiguration{}
	for _, d := range []string{"a.example", "*.example", "*.b.example", "a.*", "*", "port.example:8080"} {
		c.VirtualHosts = append(c.VirtualHosts, &l7.VirtualHost{Name: d, Domains: []string{d}})
	}
	table := route.Compile(c)
	for authority, want := range map[string]string{
		"a.example": "a.example", "A.EXAMPLE:99": "a.example", "a.example.": "a.example", "x.example": "*.example", "x.y.b.example": "*.b.example",
		"b.example": "*.example", "example": "*", "a.other": "a.*", "": "*", "port.example:8080": "port.example:8080", "port.example": "*.example", "[::1]:80": "*",
	} {
		if v, _ := table.Match(exchange(authority, "/")); v == nil || v.Name != want {
			t.Errorf("%q: %v, want %s", authority, v, want)
		}
	}
}

func TestPaths(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		match l7.PathMatch
		path  string
		want  bool
	}{
		{l7.PathMatch{Kind: l7.PathSegments, Value: "/"}, "/x", true},
		{l7.PathMatch{Kind: l7.PathSegments, Value: "/a"}, "/a", true},
		{l7.PathMatch{Kind: l7.PathSegments, Value: "/a"}, "/a/", true},
		{l7.PathMatch{Kind: l7.PathSegments, Value: "/a"}, "/ab", false},
		{l7.PathMatch{Kind: l7.PathSegments, Value: "/a/"}, "/a", true},
		{l7.PathMatch{Kind: l7.PathPrefix, Value: "/a"}, "/ab", true},
		{l7.PathMatch{Kind: l7.PathPrefix, Value: "/a", IgnoreCase: true}, "/AB", true},
		{l7.PathMatch{Kind: l7.PathExact, Value: "/a"}, "/a/", false},
		{l7.PathMatch{Kind: l7.PathRegex, Regex: regexp.MustCompile("^/[0-9]+$")}, "/12", true},
	} {
		if got := route.MatchPath(&test.match, test.path); got != test.want {
			t.Errorf("%+v with %s: %t", test.match, test.path, got)
		}
	}
}

func TestQuery(t *testing.T) {
	t.Parallel()
	c := &l7.RouteConfiguration{VirtualHosts: []*l7.VirtualHost{{Domains: []string{"*"}, Routes: []*l7.Route{
		{Match: l7.RouteMatch{Query: []l7.QueryMatch{{Name: "a b", Value: l7.StringMatch{Kind: l7.MatchExact, Value: "c d"}}}}},
	}}}}
	table := route.Compile(c)
	for path, want := range map[string]bool{"/?a%20b=c+d": true, "/?x=1&a+b=c%20d&a+b=2": true, "/?a+b=2&a+b=c+d": false, "/": false} {
		if _, r := table.Match(exchange("h", path)); (r != nil) != want {
			t.Errorf("%s: %t, want %t", path, r != nil, want)
		}
	}
}

func TestRewrite(t *testing.T) {
	t.Parallel()
	text := func(s string) *string { return &s }
	for _, test := range []struct {
		rw       l7.PathRewrite
		match    l7.PathMatch
		in, want string
	}{
		{l7.PathRewrite{Prefix: text("/xyz")}, l7.PathMatch{Kind: l7.PathSegments, Value: "/foo"}, "/foo/bar?q", "/xyz/bar?q"},
		{l7.PathRewrite{Prefix: text("/xyz/")}, l7.PathMatch{Kind: l7.PathSegments, Value: "/foo"}, "/foo/bar", "/xyz/bar"},
		{l7.PathRewrite{Prefix: text("/")}, l7.PathMatch{Kind: l7.PathSegments, Value: "/foo"}, "/foo", "/"},
		{l7.PathRewrite{Prefix: text("/")}, l7.PathMatch{Kind: l7.PathSegments, Value: "/foo/"}, "/foo/bar", "/bar"},
		{l7.PathRewrite{Full: text("/one")}, l7.PathMatch{}, "/foo/bar?q", "/one?q"},
		{l7.PathRewrite{Regex: regexp.MustCompile("^/v([0-9])/(.*)$"), Substitution: `/\2/$1`}, l7.PathMatch{}, "/v3/x", "/x/3"},
	} {
		if got := route.Rewrite(&test.rw, &test.match, test.in); got != test.want {
			t.Errorf("%s: %s, want %s", test.in, got, test.want)
		}
	}
}

func TestNormalize(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"/a/./b/../c?d=..": "/a/c?d=..", "/%61%2f": "/a%2F", "/a/..": "/", "/.hidden": "/.hidden", "//a": "/a", "/../x": "", "/%zz": "", "/%2e%2e/x": "",
	} {
		got, ok := route.Normalize(in, true)
		if ok != (want != "") || ok && got != want {
			t.Errorf("%s: %s (%t), want %q", in, got, ok, want)
		}
	}
}

func TestLocation(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		redirect  l7.Redirect
		authority string
		want      string
	}{
		{l7.Redirect{Scheme: "https"}, "a:8080", "https://a/p?q"},
		{l7.Redirect{Scheme: "https", Port: 8443}, "a", "https://a:8443/p?q"},
		{l7.Redirect{Host: "b"}, "a:8080", "http://b:8080/p?q"},
		{l7.Redirect{Port: 80, StripQuery: true}, "a:8080", "http://a/p"},
	} {
		if got := route.Location(&test.redirect, &l7.PathMatch{}, &exchange(test.authority, "/p?q").Request); got != test.want {
			t.Errorf("%+v at %s: %s, want %s", test.redirect, test.authority, got, test.want)
		}
	}
}
