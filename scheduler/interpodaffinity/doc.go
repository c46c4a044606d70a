// Package interpodaffinity is the plug-in InterPodAffinity: pods that want to be, or
// must not be, in the same topology domain as certain other pods.
//
// filter.go counts, per topology key and value, the pods that matter to the required
// terms of the pod and of those that are there; score.go adds up the weights of preferred
// terms in both directions.
package interpodaffinity
