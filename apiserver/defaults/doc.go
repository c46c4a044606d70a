// Package defaults fills the fields that Kubernetes fills when a client leaves
// them out, for what several kinds have in common: pods and pod templates,
// containers, probes, volumes and resource lists. What belongs to a single kind
// is in that kind's file below apiserver/registry.
//
// A function is named after what it defaults, changes its argument in place and
// may be called any number of times.
package defaults
