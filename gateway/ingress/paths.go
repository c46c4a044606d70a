package ingress

import (
	"regexp"
	"strings"

	networkingv1 "k8s.io/api/networking/v1"

	"github.com/periplus/periplus/l7"
)

// Ranks of kinds of paths within a host; among equals the longer one comes first.
const (
	rankExact = iota
	rankPath
	rankDefault
)

// match makes the match of a path and its rank. regex says that the paths of the host
// are regular expressions.
func match(path string, kind *networkingv1.PathType, regex bool) (l7.PathMatch, []int, error) {
	if path == "" {
		path = "/"
	}
	if regex {
		// ~* "^path": ignoring case, and only the beginning has to match.
		e, err := regexp.Compile("(?i)^(?:" + strings.TrimPrefix(path, "^") + ")")
		if err != nil {
			return l7.PathMatch{}, nil, err
		}
		return l7.PathMatch{Kind: l7.PathRegex, Value: path, Regex: e}, []int{rankPath, -len(path)}, nil
	}
	if kind != nil && *kind == networkingv1.PathTypeExact {
		return l7.PathMatch{Kind: l7.PathExact, Value: path}, []int{rankExact, -len(path)}, nil
	}
	// A trailing slash does not count, for Prefix; a path that ends without one goes
	// before the same with one.
	return l7.PathMatch{Kind: l7.PathSegments, Value: path}, []int{rankPath, -len(strings.TrimSuffix(path, "/"))}, nil
}

// rewrite makes what rewrite-target says: the whole path is replaced, $1 and so on are
// the groups of the path.
func rewrite(path, target string) (*l7.PathRewrite, error) {
	e, err := regexp.Compile("(?i)^(?:" + strings.TrimPrefix(path, "^") + ").*$")
	if err != nil {
		return nil, err
	}
	return &l7.PathRewrite{Regex: e, Substitution: target}, nil
}
