// Command upstream writes down what upstream's Kubernetes serves: every path with
// its methods, from the OpenAPI document that is published with its source, and
// every resource, from the discovery documents beside it. Only these facts are kept.
//
//	make surface        testdata/operations.txt and testdata/resources.txt of test/surface
//
// It is a Go module of its own, so that Kubernetes' source is fetched by nobody
// else: 40 MB.
package main
