package ingress

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	networkingv1 "k8s.io/api/networking/v1"
)

// prefix of the annotations that are understood.
const prefix = "nginx.ingress.kubernetes.io/"

// annotations reads those of one Ingress and notes what is wrong with them.
type annotations struct {
	ingress *networkingv1.Ingress
	wrong   func(reason, message string)
}

func (a annotations) text(name string) string {
	return strings.TrimSpace(a.ingress.Annotations[prefix+name])
}

func (a annotations) truth(name string, otherwise bool) bool {
	v := a.text(name)
	if v == "" {
		return otherwise
	}
	b, err := strconv.ParseBool(v)
	if err != nil {
		a.bad(name, v, "true or false")
		return otherwise
	}
	return b
}

func (a annotations) number(name string, otherwise int) int {
	v := a.text(name)
	if v == "" {
		return otherwise
	}
	n, err := strconv.Atoi(v)
	if err != nil || n < 0 {
		a.bad(name, v, "a number")
		return otherwise
	}
	return n
}

// seconds reads a number of seconds, or a duration like 30s.
func (a annotations) seconds(name string, otherwise time.Duration) time.Duration {
	v := a.text(name)
	if v == "" {
		return otherwise
	}
	if n, err := strconv.Atoi(v); err == nil && n > 0 {
		return time.Duration(n) * time.Second
	}
	if d, err := time.ParseDuration(v); err == nil && d > 0 {
		return d
	}
	a.bad(name, v, "a number of seconds")
	return otherwise
}

// size reads a number of bytes with k, m or g behind it.
func (a annotations) size(name string) int64 {
	v := strings.ToLower(a.text(name))
	if v == "" {
		return 0
	}
	unit := int64(1)
	switch v[len(v)-1] {
	case 'k':
		unit = 1 << 10
	case 'm':
		unit = 1 << 20
	case 'g':
		unit = 1 << 30
	}
	n, err := strconv.ParseInt(strings.TrimRight(v, "kmg"), 10, 64)
	if err != nil || n < 0 {
		a.bad(name, v, "a size like 8m")
		return 0
	}
	return n * unit
}

// list reads words between commas.
func (a annotations) list(name string) []string {
	var out []string
	for w := range strings.SplitSeq(a.text(name), ",") {
		if w = strings.TrimSpace(w); w != "" {
			out = append(out, w)
		}
	}
	return out
}

func (a annotations) bad(name, value, allowed string) {
	a.wrong("InvalidAnnotation", fmt.Sprintf("%s%s: %q is not allowed: must be %s", prefix, name, value, allowed))
}

// understood are the annotations that have an effect; others are told of.
const understood = `
	rewrite-target use-regex ssl-redirect force-ssl-redirect app-root permanent-redirect permanent-redirect-code temporal-redirect temporal-redirect-code
	proxy-read-timeout proxy-send-timeout proxy-connect-timeout proxy-body-size proxy-next-upstream-tries
	backend-protocol upstream-vhost x-forwarded-prefix
	canary canary-weight canary-weight-total canary-by-header canary-by-header-value canary-by-header-pattern canary-by-cookie
	limit-rps limit-rpm limit-burst-multiplier limit-whitelist limit-allowlist
	whitelist-source-range allowlist-source-range denylist-source-range
	enable-cors cors-allow-origin cors-allow-methods cors-allow-headers cors-allow-credentials cors-expose-headers cors-max-age
	auth-type auth-secret auth-secret-type auth-realm
	affinity affinity-mode session-cookie-name session-cookie-path session-cookie-max-age upstream-hash-by load-balance
	server-alias proxy-buffering proxy-request-buffering `

// unknown tells of annotations without an effect: somebody relies on them.
func (a annotations) unknown() {
	var names []string
	for k := range a.ingress.Annotations {
		name, ours := strings.CutPrefix(k, prefix)
		if ours && !slices.Contains(strings.Fields(understood), name) {
			names = append(names, name)
		}
	}
	if len(names) > 0 {
		slices.Sort(names)
		a.wrong("UnsupportedAnnotation", "these annotations of "+prefix+" have no effect: "+strings.Join(names, ", "))
	}
}
