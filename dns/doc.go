// Package dns answers the names of the cluster on every node, from the shared
// informers, after the Kubernetes DNS-Based Service Discovery specification
// 1.1.0, and forwards everything else.
//
//	pod ── 10.43.0.10:53 (on lo of its node) ── Server ──┬── zone: Services, EndpointSlices
//	                                                     └── forwarder: cache ── upstream resolvers
//
// In: questions over UDP and TCP, and the events of two informers. Out: answers
// with a time to live of five seconds for the cluster's own names, those of the
// upstream resolvers for all others.
//
// A question passes these files:
//
//	listen.go    one UDP socket, one TCP listener
//	exchange.go  message in, message out: what is refused, sizes, truncation
//	resolve.go   whose name is it; follows ExternalName from one to the other
//	zone.go      the names of the cluster domain and of reverse lookups
//	index.go     Services and their slices, kept up to date by events
//	records.go   the records of one Service, made when they are first asked for
//	forward.go   one question to several resolvers; the first good answer counts
//	cache.go     what they said, for as long as they said
//	upstream.go  who they are: resolv.conf, read again when it changes
//
// Where CoreDNS's kubernetes plug-in and the standards differ, the standards win:
// what an ExternalName's target lacks (no such name, no answer) is the answer to
// the alias too (RFC 6604), so that clients try again where that may help; TXT
// questions about names that do not exist are told so.
//
// Ensure makes the Service kube-system/kube-dns that the address belongs to.
package dns
