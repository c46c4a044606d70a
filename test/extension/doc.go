// Package extension shows the aggregation layer with a real extension API server:
// upstream's k8s.io/sample-apiserver, built from its module, as a process of its own
// with its own etcd.
//
// It is a Go module of its own, so that the sample is no dependency of the product:
// make extension runs it.
package extension
