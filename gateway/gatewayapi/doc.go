// Package gatewayapi makes configuration from the Gateway API (v1.6): Gateways of the
// classes whose controller is periplus.io/gateway-controller, HTTPRoutes, GRPCRoutes
// and ReferenceGrants. The class "periplus" is made by EnsureClass.
//
//	source.go     which objects there are; nothing is followed before the first Gateway
//	objects.go    their types
//	listeners.go  Gateways: which listeners can be served, and why not
//	attach.go     routes → listeners: names, namespaces, kinds, hostnames
//	rules.go      rules → routes of the engine, and the order among them
//	filters.go    filters of rules and backends
//	refs.go       backends, certificates, and whether a reference is allowed
//	status.go     conditions, as the specification words them
//
// A listener on a port that Ingresses use shares it with them: hosts are told apart
// by name.
package gatewayapi
