// Package crd holds the CustomResourceDefinitions of the Gateway API, standard
// channel, as its module sigs.k8s.io/gateway-api publishes them, compressed, and
// makes them in a cluster.
//
// The definitions are Copyright The Kubernetes Authors, licensed under the Apache
// License, Version 2.0 (http://www.apache.org/licenses/LICENSE-2.0).
//
//go:generate go run ./gen
package crd
