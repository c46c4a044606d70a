// Package nftables is the proxy backend over nf_tables, spoken to by netlink.
//
//	prerouting, output (nat) ─▶ services ─ daddr.proto.dport ─▶ map services ──┐
//	                                     ─ local: proto.dport ─▶ map nodeports ┤
//	        ext-… (masquerade, local policy), fw-… (source ranges) ◀───────────┤
//	        svc-…, loc-…:  endpoints[list . random mod n] ─▶ dnat ◀────────────┘
//	postrouting (nat): masquerade what is marked, and hairpins
//	input, forward, output (filter): refuse ports without endpoints
//
// A packet costs two or three hash lookups, whatever the number of Services.
// All endpoints of all Services are elements of one map, keyed by the number of
// a list and the index in it; a Service's chain knows its list and the list's
// length. One endpoint that comes or goes is one element and one rule, in one
// transaction. Affinity is one more map, written by the kernel, whose elements
// expire.
//
// The backend keeps a mirror of what the kernel holds (mirror.go) and sends
// what differs from the wanted layout (layout.go). At start the mirror is read
// from the kernel, each chain's content from the comments of its rules: what is
// right already is not touched. New things in the layout are a kind of step in
// rules.go.
package nftables
