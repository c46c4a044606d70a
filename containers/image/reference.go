package image

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"
)

// Reference is a full image reference. Exactly one of Tag and Digest is set.
type Reference struct {
	Domain string // "docker.io", "registry.example:5000"
	Path   string // "library/nginx"
	Tag    string // "latest"
	Digest string // "sha256:<hex>"
}

const (
	defaultDomain = "docker.io"
	defaultTag    = "latest"
	maxNameLength = 255
	maxTagLength  = 128
)

// Name is the repository: "docker.io/library/nginx".
func (r Reference) Name() string { return r.Domain + "/" + r.Path }

// String is the full reference.
func (r Reference) String() string {
	if r.Digest != "" {
		return r.Name() + "@" + r.Digest
	}
	return r.Name() + ":" + r.Tag
}

// ParseReference reads an image reference as people write it and completes it:
// no domain means docker.io, one path component there means library/, no tag
// means latest. With a digest a tag says nothing and is left out. The error
// wraps ErrInvalidReference and says what is wrong. The grammar is that of the
// distribution project.
func ParseReference(s string) (Reference, error) {
	var r Reference
	invalid := func(format string, args ...any) (Reference, error) {
		return Reference{}, fmt.Errorf("%w: %s", ErrInvalidReference, fmt.Sprintf(format, args...))
	}
	if s == "" {
		return invalid("the reference is empty")
	}
	name, digest, hasDigest := strings.Cut(s, "@")
	if hasDigest {
		if why := badDigest(digest); why != "" {
			return invalid("digest %q %s", digest, why)
		}
		r.Digest = digest
	}
	if i := strings.LastIndexByte(name, ':'); i >= 0 && !strings.Contains(name[i:], "/") && !onlyDomain(name) {
		tag := name[i+1:]
		if why := badTag(tag); why != "" {
			return invalid("tag %q %s", tag, why)
		}
		name, r.Tag = name[:i], tag
	}
	r.Domain, r.Path = splitDomain(name)
	if why := badDomain(r.Domain); why != "" {
		return invalid("registry %q %s", r.Domain, why)
	}
	if r.Path == "" {
		return invalid("the repository name is empty")
	}
	if lower := strings.ToLower(r.Path); lower != r.Path && badPath(lower) == "" {
		return invalid("repository name (%s) must be lowercase", r.Path)
	}
	if why := badPath(r.Path); why != "" {
		return invalid("repository name (%s) %s", r.Path, why)
	}
	if r.Domain == defaultDomain && len(name) == 64 && isHex(name) && !hasDigest && r.Tag == "" {
		return invalid("repository name (%s) must not be 64 hexadecimal digits, which are an image ID", name)
	}
	if len(r.Name()) > maxNameLength {
		return invalid("repository name must not be more than %d characters", maxNameLength)
	}
	switch {
	case r.Digest != "":
		r.Tag = ""
	case r.Tag == "":
		r.Tag = defaultTag
	}
	return r, nil
}

// onlyDomain reports "[::1]" and the like, whose colons separate no tag.
func onlyDomain(s string) bool { return strings.HasPrefix(s, "[") && !strings.Contains(s, "/") }

// splitDomain separates the registry from the path. A first component is a
// registry if it could not be a user's name: it has a dot, a colon, a capital,
// or is localhost.
func splitDomain(name string) (domain, path string) {
	first, rest, found := strings.Cut(name, "/")
	if !found || !strings.ContainsAny(first, ".:") && first != "localhost" && strings.ToLower(first) == first {
		first, rest = defaultDomain, name
	}
	if first == "index.docker.io" {
		first = defaultDomain
	}
	if first == defaultDomain && rest != "" && !strings.Contains(rest, "/") {
		rest = "library/" + rest
	}
	return first, rest
}

// Each bad… function says what is wrong with a part, or "".

func badDigest(d string) string {
	algorithm, digits, ok := strings.Cut(d, ":")
	switch {
	case !ok:
		return "has no algorithm, want sha256:<64 hexadecimal digits>"
	case algorithm != "sha256":
		return "is not supported, want sha256:<64 hexadecimal digits>"
	case len(digits) != 64 || !isHex(digits):
		return "must have 64 lower case hexadecimal digits"
	}
	return ""
}

func badTag(t string) string {
	switch {
	case t == "":
		return "is empty"
	case len(t) > maxTagLength:
		return "is longer than " + strconv.Itoa(maxTagLength) + " characters"
	case t[0] == '.' || t[0] == '-':
		return "must begin with a letter, a digit or an underscore"
	}
	for i := range len(t) {
		if c := t[i]; !isAlnum(c) && c != '_' && c != '.' && c != '-' && (c < 'A' || c > 'Z') {
			return fmt.Sprintf("must consist of letters, digits, _, . and -, not %q", t[i:i+1])
		}
	}
	return ""
}

func badDomain(d string) string {
	host, port := d, ""
	if i := strings.LastIndexByte(d, ':'); i >= 0 && !strings.HasSuffix(d, "]") {
		host, port = d[:i], d[i+1:]
		if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 || port[0] == '+' {
			return "has the port " + strconv.Quote(port) + ", which must be 1 to 65535"
		}
	}
	if inner, ok := strings.CutPrefix(host, "["); ok {
		ip, err := netip.ParseAddr(strings.TrimSuffix(inner, "]"))
		if err != nil || !ip.Is6() || ip.Zone() != "" || !strings.HasSuffix(host, "]") {
			return "is not an IPv6 address in brackets"
		}
		return ""
	}
	for _, label := range strings.Split(host, ".") {
		if label == "" {
			return "is not a host name: it has an empty label"
		}
		if label[0] == '-' || label[len(label)-1] == '-' {
			return "is not a host name: a label begins or ends with -"
		}
		for i := range len(label) {
			if c := label[i]; !isAlnum(c) && c != '-' && (c < 'A' || c > 'Z') {
				return fmt.Sprintf("is not a host name: it has %q", label[i:i+1])
			}
		}
	}
	return ""
}

func badPath(p string) string {
	for _, c := range strings.Split(p, "/") {
		if c == "" {
			return "has an empty component"
		}
		if !isAlnum(c[0]) || !isAlnum(c[len(c)-1]) {
			return fmt.Sprintf("must have components that begin and end with a lower case letter or a digit, not %q", c)
		}
		for i := 0; i < len(c); {
			if isAlnum(c[i]) {
				i++
				continue
			}
			end := i
			for !isAlnum(c[end]) {
				end++ // ends: the last one is alphanumeric
			}
			sep := c[i:end]
			if sep != "." && sep != "_" && sep != "__" && strings.Trim(sep, "-") != "" {
				return fmt.Sprintf("must consist of lower case letters and digits, separated by ., _, __ or any number of -, not %q", sep)
			}
			i = end
		}
	}
	return ""
}

func isAlnum(c byte) bool { return c >= 'a' && c <= 'z' || c >= '0' && c <= '9' }

func isHex(s string) bool { return strings.Trim(s, "0123456789abcdef") == "" }
