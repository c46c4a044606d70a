package engine

import (
	"net"
	"net/netip"
	"strings"

	"github.com/periplus/periplus/l7"
)

// forwarded finds the client's address and tells the endpoint about it.
func forwarded(x *l7.Exchange, m *manager) {
	q := &x.Request
	peer := x.Connection.Remote.Addr()
	x.Client = peer
	if m.ForwardedFor == l7.ForwardedForKeep {
		return
	}
	trusted := 0
	if m.ForwardedFor == l7.ForwardedForAppend {
		trusted = m.TrustedProxies
	}
	chain, proto, host, port := peer.String(), "", "", ""
	if m.ForwardedFor == l7.ForwardedForAppend {
		if before, ok := q.Header.Joined("x-forwarded-for"); ok {
			x.Client = clientOf(before, trusted, peer)
			chain = before + ", " + chain
		}
		if trusted > 0 {
			proto, host, port = q.Header.Get("x-forwarded-proto"), q.Header.Get("x-forwarded-host"), q.Header.Get("x-forwarded-port")
		}
	}
	if proto == "" {
		proto = q.Scheme
	}
	if host == "" {
		host = q.Authority
	}
	if port == "" {
		port = portOf(q, x)
	}
	// What the client said goes in one pass.
	h := q.Header[:0]
	for _, f := range q.Header {
		if n := len(f.Name); n >= 8 && (f.Name[0] == 'x' || f.Name[0] == 'X') && ours(f.Name) {
			continue
		}
		h = append(h, f)
	}
	q.Header = append(h,
		l7.Field{Name: "X-Forwarded-For", Value: chain}, l7.Field{Name: "X-Forwarded-Proto", Value: proto},
		l7.Field{Name: "X-Forwarded-Host", Value: host}, l7.Field{Name: "X-Forwarded-Port", Value: port},
		l7.Field{Name: "X-Real-IP", Value: x.Client.String()},
	)
}

func ours(name string) bool {
	switch len(name) {
	case len("x-real-ip"):
		return strings.EqualFold(name, "x-real-ip")
	case len("x-forwarded-for"):
		return strings.EqualFold(name, "x-forwarded-for")
	case len("x-forwarded-host"):
		return strings.EqualFold(name, "x-forwarded-host") || strings.EqualFold(name, "x-forwarded-port")
	case len("x-forwarded-proto"):
		return strings.EqualFold(name, "x-forwarded-proto")
	}
	return false
}

// clientOf takes the entry that the outermost trusted proxy has written.
func clientOf(list string, trusted int, peer netip.Addr) netip.Addr {
	entries := strings.Split(list, ",")
	if trusted < 1 || trusted > len(entries) {
		return peer
	}
	a, err := netip.ParseAddr(strings.TrimSpace(entries[len(entries)-trusted]))
	if err != nil {
		return peer
	}
	return a
}

// portOf is the port that the client has asked for.
func portOf(q *l7.Request, x *l7.Exchange) string {
	if p := x.Connection.Destination.Port(); p != 0 && p != 80 && p != 443 {
		if _, named, err := net.SplitHostPort(q.Authority); err == nil {
			return named
		}
		return itoa(int64(p))
	}
	if q.Scheme == "https" {
		return "443"
	}
	return "80"
}
