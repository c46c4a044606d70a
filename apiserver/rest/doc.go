// Package rest serves every verb for every registry.Resource, generically.
//
//	Handler ── endpoint (a served group version of a resource) ── Objects
//	                                                               │ write: prepare, admit, validate, compare-and-swap
//	                                                               │ read: cacher snapshot, watch
//
// handler.go dispatches, one file a verb follows; objects.go holds the write
// path shared by create, update, patch and subresources; codec.go and
// respond.go know media types. Subresources with a life of their own (binding,
// eviction, log, exec …) are registered by name from outside.
package rest
