// Package crd defines Istio's kinds that this mesh understands, as custom resources:
// VirtualService and DestinationRule (networking.istio.io), PeerAuthentication and
// AuthorizationPolicy (security.istio.io). They are made when the mesh is first used.
//
// The schemas have what people want explained; what a field may hold is checked by
// mesh/validate, in Istio's words. A new kind is one entry in definitions.go.
package crd
