// Package mesh is act 8: what the parts of the service mesh agree on. It has the
// ports, names and identities, so that the control plane, the sidecar and other
// people's proxies can meet.
//
//	                    ┌──────────── peri, only while a namespace is in the mesh ────────────┐
//	Namespace, Pod ────►│ inject    the sidecar is added when a pod is made (webhook)         │
//	Service, slices ───►│ pilot     Istio's resources and Services → xDS (ADS), to who asks   │
//	VirtualService, … ─►│ validate  wrong rules are refused in Istio's words (webhook)        │
//	                    │ ca        certificates for service accounts (SPIFFE), 24 h          │
//	                    └───────▲───────────────────────────────▲─────────────────────────────┘
//	                            │ gRPC 15012, token             │ gRPC 15012, token
//	   pod: mesh-init (rules) ──┼──► sidecar 15001 out, 15006 in │   Envoy, gRPC clients (xds:///)
//	                            └──── xDS → l7 snapshots ────────┘
//
// The children do not know each other; app puts them together. sidecar has no
// Kubernetes types in it, because there is one for each pod.
//
// Names, ports, annotations and metrics are Istio's, where people know them.
package mesh
