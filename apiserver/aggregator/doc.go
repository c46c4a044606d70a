// Package aggregator is the aggregation layer (act 1): requests for the group versions
// that an APIService hands to a Service go to the extension API server behind it.
//
//	/apis/<group>/<version>/… ── APIService with a Service? ──no──► this server
//	                                       │
//	                              available? ──no──► 503 "service unavailable"
//	                                       │
//	                     TLS, front-proxy client certificate, X-Remote-User … ──► a ready endpoint
//
// Every group version that this server serves itself has an APIService without a
// Service: those of built-in groups are made at the start, those of custom resources
// with their definitions (label kube-aggregator.kubernetes.io/automanaged). Discovery
// orders groups and versions by the priorities in them.
//
// Each remote APIService has a goroutine that finds out whether its server can be
// reached, writes condition Available and keeps the server's discovery document and its
// index of OpenAPI documents. It looks again when the APIService, its Service or one of
// its EndpointSlices changes, after a failure with growing distance, and every 30
// seconds. Without remote APIServices none of this runs, and Services and EndpointSlices
// are not watched.
//
//	aggregator.go    which APIServices there are, and what follows from it
//	local.go         APIServices of this server's own group versions
//	remote.go        the connection to one extension API server
//	availability.go  whether it can be reached
//	proxy.go         the request path
//	openapi.go       its OpenAPI documents
//	trust.go         what it needs to trust this server: kube-system/extension-apiserver-authentication
package aggregator
