// Package policy enforces NetworkPolicies on one node, in the kernel.
//
//	informers ─▶ Compile (pure) ─▶ Layout ─▶ table.go: what differs ─▶ nftables
//
//	forward, new connections ─▶ connections
//	    source address      ─▶ map egress  ─▶ out-…   which destinations the pod may reach
//	    destination address ─▶ map ingress ─▶ in-…    who may reach the pod
//	    in-…: one rule an allowed peer and port; the last one drops
//
// A pod that no policy selects is in neither map. Pods with the same rules share a
// chain, whose name is a hash of them; peers with the same selectors share a set of
// addresses. A pod that comes or goes is a few elements, and mostly no rule. All of
// a change is one transaction.
//
// As everywhere, connections that exist when a policy comes go on, and what a
// node sends to its own pods (probes) or pods to their node is not judged. Without
// a NetworkPolicy there is no table, and other pods are not watched.
package policy
