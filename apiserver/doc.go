// Package apiserver serves the Kubernetes API (act 1 of the journey).
//
//	request ── authn ── audit ── flow ── authz ── admission ── registry ── store
//	                                                              │
//	                            get, list, watch  ◄── cacher ◄────┘ the decoded object and its revision
//
// registry says what a resource is and holds one file a kind below it, cacher
// is the watch cache, the other children are the stations of the pipeline. This
// package assembles them into one http.Handler and serves it.
package apiserver
