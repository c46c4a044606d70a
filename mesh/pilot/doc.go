// Package pilot is the mesh's control plane: it turns Services, EndpointSlices and
// Istio's resources into xDS and serves it (ADS, state of the world and incremental)
// to sidecars, to Envoy and to gRPC clients.
//
//	informers ─► store.go ─► collect.go ─► World (immutable) ─► generators ─► resources ─► streams
//	                                          │                  cluster.go    CDS
//	                                          │                  endpoint.go   EDS
//	                                          │                  outbound.go, inbound.go LDS
//	                                          │                  route.go, virtualservice.go RDS
//	                                          │                  authorization.go, tls.go  parts of them
//	                                          │                  proxyless.go  for gRPC clients
//	                                          └ what two worlds have in common is shared, so that a
//	                                            change of endpoints makes no listener or route anew
//
// A resource is marshalled once per world and view (all proxies of a namespace see the
// same outbound configuration) and its version is the hash of its bytes: a stream gets
// only what differs from what it has been sent, and nothing if nothing does. Types go
// out in the order clusters, endpoints, listeners, routes.
//
// New holds no goroutine; Run ends when its context does. Callers show a token, and get
// only configuration for proxies of their own namespace.
package pilot
