// Package endpointslice publishes the ready pods of each Service as
// EndpointSlices, with the reconciler of k8s.io/endpointslice.
//
//	pod ready ──► Services that select it ──► slices written at once
//
// There is no batching delay: while one write is under way, further pods gather
// and go into the next. Services without a selector are left alone; their slices
// are somebody else's (an operator's, or the proxy's for node-local Services).
package endpointslice
