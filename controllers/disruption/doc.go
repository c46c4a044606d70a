// Package disruption says in each PodDisruptionBudget's status how many of its
// pods may be evicted now:
//
//	disruptionsAllowed = healthy pods − pods that must be healthy
//
// The eviction subresource spends from that number and notes the pods that it
// evicts; those do not count as healthy any more, until they are gone or two
// minutes have passed in which they are not.
package disruption
