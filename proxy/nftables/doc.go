// Package nftables is the proxy backend over nf_tables, spoken to by netlink.
//
//	prerouting, output (nat) ─▶ services ── daddr.proto.dport ─▶ map services ──┐
//	                                     ── local: proto.dport ─▶ map nodeports ┤
//	     masq-… (masquerade), policy-… (Local), from-… (source ranges) ◀────────┤
//	     one-of-n:  endpoints[daddr.proto.dport.(random mod n)] ─▶ dnat ◀───────┘
//	postrouting (nat): masquerade what is marked, and hairpins
//	input, forward, output (filter): refuse ports without endpoints
//
// A connection costs two hash lookups, whatever the number of Services, and a
// packet after its first none. All endpoints are elements of one map; the chain
// that chooses one of n is shared by all ports with n endpoints. An endpoint
// that comes or goes is two elements, and mostly no rule: the kernel checks maps
// against each rule that uses them, so that a chain per Service costs minutes at
// 250,000 endpoints. Affinity is one more map, written by the kernel, whose
// elements expire.
//
// The backend keeps a mirror of what the kernel holds (mirror.go) and sends
// what differs from the wanted layout (layout.go). At start the mirror is read
// from the kernel, each chain's content from the comments of its rules: what is
// right already is not touched. New things in the layout are a kind of step in
// rules.go.
package nftables
