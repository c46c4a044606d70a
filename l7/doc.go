// Package l7 is the contract of one proxy engine for HTTP, gRPC and TCP: what a
// configuration is made of, what a filter is, and what can be known about a
// request. The gateway and the mesh's sidecar make configurations; l7/engine
// carries them out.
//
// The vocabulary is that of xDS (envoy.config.listener.v3 and so on), so that a
// configuration received over xDS and one made from Ingress objects look alike:
//
//	Snapshot
//	├── Listener ── FilterChain (SNI, ALPN, destination) ─┬─ HTTPConnectionManager ── RouteConfiguration, by name
//	│                    └── DownstreamTLS                └─ TCPProxy ── Cluster, by name
//	├── RouteConfiguration ── VirtualHost (domains) ── Route (match, action, filters) ── Cluster, by name
//	├── Cluster (balancing, protocol, TLS, circuit breaker, outlier detection)
//	└── Endpoint (address, weight, locality, priority, health), by the name of the cluster
//
// A Snapshot and all that it points to is immutable once it has been given to
// Engine.Apply. A change is a new Snapshot that shares what has not changed: the
// engine compiles again only what has another pointer. The swap is atomic: a
// request sees one snapshot from its first filter to its last retry, the next one
// on the same connection sees the new one. No connection is closed because of a
// swap, except idle ones to endpoints that are gone.
//
// A request passes these folders:
//
//	l7/engine     listeners, TLS, connections from clients, forwarding, retries
//	l7/http1      the bytes of HTTP/1.1: parsing (RFC 9112) and writing
//	l7/route      compiled virtual hosts and matches
//	l7/filter/*   one folder a filter: headers, ratelimit, fault, rbac, …
//	l7/upstream   clusters at run time: pools, circuit breakers
//	l7/balance    load balancing policies and outlier detection
//
// A minimal proxy:
//
//	e := engine.New(engine.Config{Log: log})
//	err := e.Apply(&l7.Snapshot{
//		Listeners: []*l7.Listener{{Name: "web", Address: "127.0.0.1:8080", Chains: []*l7.FilterChain{{
//			HTTP: &l7.HTTPConnectionManager{RouteConfig: "web"}}}}},
//		Routes: map[string]*l7.RouteConfiguration{"web": {VirtualHosts: []*l7.VirtualHost{{Domains: []string{"*"},
//			Routes: []*l7.Route{{Forward: &l7.Forward{Cluster: "app"}}}}}}},
//		Clusters:  map[string]*l7.Cluster{"app": {}},
//		Endpoints: map[string][]*l7.Endpoint{"app": {{Address: "127.0.0.1:9090"}}},
//	})
//	err = e.Run(ctx) // until ctx ends; then listeners are drained
//
// A new filter is one folder below l7/filter with a type that implements Filter;
// it needs no registration, since a snapshot holds filters as values.
//
// Nothing here knows Kubernetes, so that the sidecar stays small.
package l7
