package engine

import (
	"crypto/tls"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/periplus/periplus/l7"
)

// A chain is a compiled filter chain.
type chain struct {
	listener *l7.Listener
	config   *l7.FilterChain
	tls      *tls.Config
	http     *manager
}

// A manager is an HTTP connection manager with its defaults filled in.
type manager struct {
	l7.HTTPConnectionManager
}

func (e *Engine) newChain(l *l7.Listener, c *l7.FilterChain) *chain {
	out := &chain{listener: l, config: c}
	if c.HTTP != nil {
		m := &manager{HTTPConnectionManager: *c.HTTP}
		setDefault(&m.MaxHeaderBytes, 64<<10)
		setDefault(&m.IdleTimeout, time.Hour)
		setDefault(&m.HeaderTimeout, 30*time.Second)
		setDefault(&m.StreamIdleTimeout, 5*time.Minute)
		setDefault(&m.MaxStreams, 250)
		out.http = m
	}
	if c.TLS != nil {
		out.tls = downstreamTLS(c)
	}
	return out
}

func setDefault[T comparable](v *T, to T) {
	var zero T
	if *v == zero {
		*v = to
	}
}

// A hello is what the first bytes of a connection say.
type hello struct {
	tls        bool
	serverName string
	protocols  []string // ALPN, or what plain text looks like
}

// choose finds the chain in the order of xDS; nil: none.
func (f *front) choose(h *hello, to, from netip.AddrPort) *chain {
	var best *chain
	var bestScore score
	for _, c := range f.chains {
		if s, ok := scoreOf(&c.config.Match, h, to, from); ok && (best == nil || s.over(&bestScore)) {
			best, bestScore = c, s
		}
	}
	if best == nil {
		return f.def
	}
	return best
}

// A score is how specific a match is, the most important first.
type score [6]int

func (s *score) over(o *score) bool {
	for i := range s {
		if s[i] != o[i] {
			return s[i] > o[i]
		}
	}
	return false
}

func scoreOf(m *l7.ChainMatch, h *hello, to, from netip.AddrPort) (s score, ok bool) {
	if m.DestinationPort != 0 {
		if m.DestinationPort != to.Port() {
			return s, false
		}
		s[0] = 1
	}
	if s[1], ok = prefixScore(m.Destinations, to.Addr()); !ok {
		return s, false
	}
	if s[2], ok = nameScore(m.ServerNames, h.serverName); !ok {
		return s, false
	}
	if m.Transport != "" {
		if (m.Transport == "tls") != h.tls {
			return s, false
		}
		s[3] = 1
	}
	if len(m.ApplicationProtocols) > 0 {
		if !intersects(m.ApplicationProtocols, h.protocols) {
			return s, false
		}
		s[4] = 1
	}
	s[5], ok = prefixScore(m.Sources, from.Addr())
	return s, ok
}

func prefixScore(prefixes []netip.Prefix, a netip.Addr) (int, bool) {
	if len(prefixes) == 0 {
		return 0, true
	}
	best := -1
	for _, p := range prefixes {
		if p.Contains(a) {
			best = max(best, p.Bits())
		}
	}
	return best + 1, best >= 0
}

func nameScore(names []string, sni string) (int, bool) {
	if len(names) == 0 {
		return 0, true
	}
	sni = strings.ToLower(strings.TrimSuffix(sni, "."))
	best := 0
	for _, n := range names {
		n = strings.ToLower(n)
		switch {
		case n == sni:
			return 1 << 20, true
		case n == "*":
			best = max(best, 1)
		case strings.HasPrefix(n, "*.") && len(sni) > len(n)-1 && strings.HasSuffix(sni, n[1:]):
			best = max(best, len(n))
		}
	}
	return best, best > 0
}

func intersects(a, b []string) bool {
	for _, x := range a {
		if slices.Contains(b, x) {
			return true
		}
	}
	return false
}
