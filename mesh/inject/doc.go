// Package inject gives pods their sidecar when they are made: a mutating webhook
// that the API server calls for namespaces with the label istio-injection=enabled
// (or periplus.io/mesh=enabled) and for pods with sidecar.istio.io/inject=true.
//
//	AdmissionReview ── webhook.go ──► decide.go: wanted? ──► pod.go: what is added ──► JSON patch
//	                                                          ├─ probes.go   HTTP and TCP probes go through the sidecar
//	                                                          ├─ options.go  annotations of the pod
//	                                                          └─ volumes.go  token, root certificate, labels
//
// What is added has Istio's names: the init container istio-init (redirect rules)
// and the native sidecar istio-proxy, both of the image that every node has.
package inject
