// Package edge is the part that the edge of the cluster, Ingress and the Gateway API,
// has in the mesh: on every node it calls pods with mutual TLS, as the service account
// periplus-ingress of the mesh's namespace.
//
//	server: ca ──► Publish ──► Secret kube-system/periplus-edge, new every 12 h
//	                              │   (nodes may read this one, by a Role)
//	node:   gateway ── Secure ──► Edge ◄── Follower: the Secret, pods with a sidecar
//
// A node follows nothing before its gateway has a backend, and no pods before there
// is a mesh.
//
//	edge.go      what the gateway asks: which endpoints, which certificates
//	publish.go   the Secret, and who may read it
//	follow.go    a node's view of it
package edge
