// Command upstream writes down what upstream's Kubernetes serves: every path with
// its methods, from the OpenAPI document that is published with its source, and
// every resource, from the discovery documents beside it, and what kubectl shows of
// each kind. Only these facts are kept.
//
//	make surface        testdata/operations.txt, resources.txt, columns.txt of test/surface
//
// It is a Go module of its own, so that Kubernetes' source is fetched by nobody
// else: 40 MB.
package main
