// Package measure is what the API server tells about itself at /metrics, under the names,
// labels and buckets of upstream's API server.
//
//	pipeline ── Begin … End of a request ──► requests.go
//	rest, admission, crd, authn ── one call each, through the request's context ──► the other files
//	what is known anyway (objects, caches, levels) ── read when somebody asks (state.go)
//
// Metrics is made once a server; a nil one measures nothing. Series appear when they are
// used first. The table of all metrics is docs/metrics.md, made from Definitions; what
// upstream promises (stable and beta metrics) is compared with testdata/upstream.txt.
// To add one: a field and its definition in the file of its kind, and a method that the
// station calls.
package measure
