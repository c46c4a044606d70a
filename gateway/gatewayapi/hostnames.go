package gatewayapi

import "strings"

// covers reports whether a hostname ("", "*.example", "a.example") includes another one.
func covers(wide, narrow string) bool {
	switch {
	case wide == "", wide == narrow:
		return true
	case strings.HasPrefix(wide, "*."):
		return strings.HasSuffix(narrow, wide[1:]) && len(narrow) > len(wide)-1
	default:
		return false
	}
}

// intersect returns the hostnames that a route has at a listener; nil: none.
func intersect(listener string, route []string) []string {
	if len(route) == 0 {
		return []string{listener}
	}
	var out []string
	for _, r := range route {
		switch {
		case covers(listener, r):
			out = append(out, r)
		case covers(r, listener):
			out = append(out, listener)
		}
	}
	return out
}
