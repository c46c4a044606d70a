// Package registry says what a resource of the API is: a value of type Resource.
// Generic code (apiserver) serves every verb for every Resource; what differs
// between kinds is data and the functions of its Strategy.
//
//	registry/<group>/<kind>.go   one file a kind: its Resource and Strategy
//	registry/all/all.go          the explicit list of all built-in resources
//
// To add a kind: write its file, add it to its group's Resources. Custom
// resources are the same Resource, made at run time.
package registry
