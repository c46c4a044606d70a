// Package base holds what every room of Periplus shares: the keys under which
// things are logged, the life cycle of components and waiting for the first of
// several to fail. It imports nothing but the standard library and
// golang.org/x/sync, so that any room may import it.
//
// Put a thing here only when three rooms need it and the standard library,
// k8s.io/utils or k8s.io/apimachinery have no such thing.
package base
