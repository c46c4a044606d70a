// Package translate makes l7 snapshots of xDS resources. A State keeps what each
// resource comes to, so that a new snapshot shares all that has not changed and the
// engine compiles only what has.
//
//	Put(type, name, Any) ─► cluster.go, tls.go   l7.Cluster
//	                        endpoint.go          []l7.Endpoint
//	                        listener.go, http.go l7.Listener, with its routes if they are inside
//	                        route.go, match.go   l7.RouteConfiguration
//	                        rbac.go              filters
//	Snapshot() ─────────────────────────────────► l7.Snapshot
//
// A resource that cannot be carried out is refused by Put, and the last one of that
// name stays in force.
package translate
