// Package dns answers the names of the cluster on every node, from the shared
// informers, after the Kubernetes DNS-Based Service Discovery specification
// 1.1.0, and forwards everything else.
//
//	pod ── 10.43.0.10:53 (on lo of its node) ── Server ──┬── records from Services, EndpointSlices, Pods
//	                                                     └── upstream resolvers
package dns
