package redirect

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
)

// Config says what is redirected.
type Config struct {
	// OutboundPort and InboundPort are where the proxy listens.
	OutboundPort, InboundPort uint16
	// TunnelPort is not captured (HBONE).
	TunnelPort uint16
	// ID is the proxy's user and group: what it sends is not redirected.
	ID uint32
	// OwnPorts are those of the proxy itself: what comes in for them is not redirected.
	OwnPorts []uint16
	// InboundPorts are the ports that are captured; nil: all; empty: none.
	InboundPorts []uint16
	// ExcludeInbound and ExcludeOutbound are destination ports that are left alone.
	ExcludeInbound, ExcludeOutbound []uint16
	// OutboundRanges are the destinations that are captured; nil: all; empty: none.
	OutboundRanges []netip.Prefix
	// ExcludeRanges are destinations that are left alone.
	ExcludeRanges []netip.Prefix
}

// Chains, by the names that people know.
const (
	chainInbound    = "ISTIO_INBOUND"
	chainInRedirect = "ISTIO_IN_REDIRECT"
	chainOutput     = "ISTIO_OUTPUT"
	chainRedirect   = "ISTIO_REDIRECT"
	hookPrerouting  = "PREROUTING"
	hookOutput      = "OUTPUT"
)

// A rule is one line of a chain. Fields that are zero match everything.
type rule struct {
	chain    string
	loopback bool // leaves through lo
	src, dst netip.Prefix
	notDst   bool
	port     uint16
	notPort  bool
	owner    owner
	target   string // a chain, RETURN, or empty for a redirection to to
	to       uint16
}

// owner is whose socket sent a packet.
type owner int

const (
	anyone owner = iota
	proxyUser
	notProxyUser
	proxyGroup
	notProxyGroup
)

const doReturn = "RETURN"

// rules are those of one family, in order. local is its loopback address, source
// what a proxy sends to its application from.
func (c *Config) rules(local, source netip.Addr) []rule {
	host := func(a netip.Addr) netip.Prefix { return netip.PrefixFrom(a, a.BitLen()) }
	out := []rule{
		{chain: hookPrerouting, target: chainInbound},
		{chain: hookOutput, target: chainOutput},
		{chain: chainInRedirect, to: c.InboundPort},
		{chain: chainRedirect, to: c.OutboundPort},
	}
	if c.TunnelPort != 0 {
		out = append(out, rule{chain: chainInbound, port: c.TunnelPort, target: doReturn})
	}
	for _, p := range append(slices.Clip(c.OwnPorts), c.ExcludeInbound...) {
		out = append(out, rule{chain: chainInbound, port: p, target: doReturn})
	}
	if c.InboundPorts == nil {
		out = append(out, rule{chain: chainInbound, target: chainInRedirect})
	}
	for _, p := range c.InboundPorts {
		out = append(out, rule{chain: chainInbound, port: p, target: chainInRedirect})
	}

	for _, p := range c.ExcludeOutbound {
		out = append(out, rule{chain: chainOutput, port: p, target: doReturn})
	}
	// 1. What the proxy hands to its application.
	out = append(out, rule{chain: chainOutput, loopback: true, src: host(source), target: doReturn})
	for _, who := range [][2]owner{{proxyUser, notProxyUser}, {proxyGroup, notProxyGroup}} {
		out = append(out,
			// 2. The proxy sends to its own pod through a Service: to the inbound side.
			rule{chain: chainOutput, loopback: true, dst: host(local), notDst: true, port: c.TunnelPort, notPort: c.TunnelPort != 0, owner: who[0], target: chainInRedirect},
			// 3. The application talks to itself.
			rule{chain: chainOutput, loopback: true, owner: who[1], target: doReturn},
			// 4. What the proxy sends out must not come back to it.
			rule{chain: chainOutput, owner: who[0], target: doReturn},
		)
	}
	out = append(out, rule{chain: chainOutput, dst: host(local), target: doReturn})
	for _, p := range c.ExcludeRanges {
		if p.Addr().BitLen() == local.BitLen() {
			out = append(out, rule{chain: chainOutput, dst: p, target: doReturn})
		}
	}
	if c.OutboundRanges == nil {
		return append(out, rule{chain: chainOutput, target: chainRedirect})
	}
	for _, p := range c.OutboundRanges {
		if p.Addr().BitLen() == local.BitLen() {
			out = append(out, rule{chain: chainOutput, dst: p, target: chainRedirect})
		}
	}
	return out
}

// loopbacks are the loopback address and the proxy's source, of IPv4 and IPv6.
var loopbacks = [2][2]netip.Addr{
	{netip.AddrFrom4([4]byte{127, 0, 0, 1}), netip.AddrFrom4([4]byte{127, 0, 0, 6})},
	{netip.IPv6Loopback(), netip.MustParseAddr("::6")},
}

// Text is the rules for IPv4, as iptables-save would show them.
func (c *Config) Text() string {
	var b strings.Builder
	b.WriteString("*nat\n")
	for _, chain := range []string{chainInbound, chainInRedirect, chainOutput, chainRedirect} {
		fmt.Fprintf(&b, "-N %s\n", chain)
	}
	for _, r := range c.rules(loopbacks[0][0], loopbacks[0][1]) {
		b.WriteString(r.text(c.ID))
		b.WriteByte('\n')
	}
	b.WriteString("COMMIT\n")
	return b.String()
}

func (r *rule) text(id uint32) string {
	var b strings.Builder
	fmt.Fprintf(&b, "-A %s", r.chain)
	if r.src.IsValid() {
		fmt.Fprintf(&b, " -s %s", r.src)
	}
	if r.dst.IsValid() {
		fmt.Fprintf(&b, "%s -d %s", not(r.notDst), r.dst)
	}
	if r.loopback {
		b.WriteString(" -o lo")
	}
	b.WriteString(" -p tcp")
	if r.port != 0 {
		fmt.Fprintf(&b, " -m tcp%s --dport %d", not(r.notPort), r.port)
	}
	switch r.owner {
	case proxyUser, notProxyUser:
		fmt.Fprintf(&b, " -m owner%s --uid-owner %d", not(r.owner == notProxyUser), id)
	case proxyGroup, notProxyGroup:
		fmt.Fprintf(&b, " -m owner%s --gid-owner %d", not(r.owner == notProxyGroup), id)
	}
	if r.target == "" {
		fmt.Fprintf(&b, " -j REDIRECT --to-ports %d", r.to)
	} else {
		fmt.Fprintf(&b, " -j %s", r.target)
	}
	return b.String()
}

func not(yes bool) string {
	if yes {
		return " !"
	}
	return ""
}
