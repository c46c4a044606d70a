// Package webhook asks programs outside of the server about writes
// (admission.k8s.io/v1, KEP-2896 and KEP-3716): what mutating and validating
// admission webhooks have in common. The plug-ins are its children.
//
//	configurations ── Index: compiled once a change ── Hook.Matches ── Caller.Ask ──► program
//	                                                   rules, selectors, conditions   TLS, by URL or Service
//
// Without a configuration a write costs one comparison of numbers. Connections are
// kept while they are used. A Service is reached at the address of one of its
// ready endpoints, chosen here: the request needs neither DNS nor a cluster IP.
package webhook
