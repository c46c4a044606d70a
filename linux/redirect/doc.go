// Package redirect turns the TCP connections of a network namespace over to a
// proxy in it, with the rules that every mesh uses, and tells the proxy where a
// connection was going.
//
//	PREROUTING ─► ISTIO_INBOUND ─► ISTIO_IN_REDIRECT ─► 15006
//	OUTPUT ─────► ISTIO_OUTPUT ─┬► ISTIO_REDIRECT ────► 15001
//	                            └► ISTIO_IN_REDIRECT     what the proxy sends to its own pod
//
// Config.Rules makes the rules as data, Text shows them as iptables-save would,
// Apply puts them into the kernel through linux/nft, in one transaction.
package redirect
