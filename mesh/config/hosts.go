package config

import "strings"

// FullHost completes a short host name of an object: "reviews" in namespace shop is
// reviews.shop.svc.cluster.local. Names with a dot, and wildcards, are complete.
func FullHost(host, namespace, domain string) string {
	if strings.Contains(host, ".") || strings.HasPrefix(host, "*") {
		return host
	}
	return host + "." + namespace + ".svc." + domain
}

// HostMatches reports whether a host that may begin with "*" takes in another one.
func HostMatches(pattern, host string) bool {
	if suffix, ok := strings.CutPrefix(pattern, "*"); ok {
		return strings.HasSuffix(strings.TrimPrefix(host, "*"), suffix)
	}
	return pattern == host
}

// Exported reports whether an object is visible in a namespace by its exportTo.
func Exported(exportTo []string, own, namespace string) bool {
	if len(exportTo) == 0 {
		return true
	}
	for _, e := range exportTo {
		if e == "*" || e == namespace || e == "." && own == namespace {
			return true
		}
	}
	return false
}
