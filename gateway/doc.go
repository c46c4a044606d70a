// Package gateway is act 7, the edge of the cluster: it turns Ingress and Gateway API
// objects into one l7 snapshot, on every node, and requests go straight to the pods.
//
//	Ingress, IngressClass ──► gateway/ingress ────┐
//	Gateway, HTTPRoute, … ──► gateway/gatewayapi ─┤ Build: ports, hosts, routes, backends
//	Services, EndpointSlices, Secrets ────────────┘    │
//	                                                   ▼
//	                      l7.Snapshot ──► l7/engine: :80, :443 and the ports of Gateways
//
// A Source reads its objects and adds what they want to a Build. Server follows the
// objects and builds anew when one of them, or something that the last build has
// asked for, changes; what comes out equal keeps its pointer, so that the engine
// keeps its connections. Endpoints are those of the EndpointSlices: no hop through
// the Service's address.
//
// Without an Ingress or a Gateway nothing is built and nothing listens. When the API
// server is away, what was built last goes on.
//
// A new source is one folder with a Source and one line in gateway/all.
package gateway
