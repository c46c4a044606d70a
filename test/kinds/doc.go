// Package kinds compares the rules of every built-in kind with upstream's own: the
// strategies of k8s.io/kubernetes are called with thousands of objects that are nearly
// right, and so are ours, and whatever differs is told: errors, their paths and
// wording, warnings, defaults, what is dropped, the generation.
//
//	bases/<Kind>.yaml   good objects of the kind
//	      │ mutate      every field in turn gets edge values; then several at once
//	      ▼
//	upstream.create / ours.create      update, status and other subresources alike
//	      └── compare ──┘              differences, grouped by what they say
//
// It is a Go module of its own, because upstream's strategies need all of
// k8s.io/kubernetes: make kinds runs it. A kind is added by a line in kinds_test.go
// and a file in bases.
//
//	go test . -kind Pod,Service -random 5000 -seed 7
package kinds
