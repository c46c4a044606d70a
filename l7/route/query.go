package route

import (
	"net/url"
	"strings"
)

// queryValue returns the first value of a parameter and whether there is one.
func queryValue(query, name string) (string, bool) {
	for query != "" {
		var pair string
		pair, query, _ = strings.Cut(query, "&")
		k, v, _ := strings.Cut(pair, "=")
		if k != name {
			if !strings.ContainsAny(k, "%+") {
				continue
			}
			if u, err := url.QueryUnescape(k); err != nil || u != name {
				continue
			}
		}
		u, err := url.QueryUnescape(v)
		if err != nil {
			u = v
		}
		return u, true
	}
	return "", false
}

// QueryValue returns the first value of a parameter of a raw query.
func QueryValue(query, name string) (string, bool) { return queryValue(query, name) }
