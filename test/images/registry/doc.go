// Package registry is an image registry in memory, served over plain HTTP on a
// listener of the caller's choice: one inside a test network, usually.
package registry
