// Package horizontalpodautoscaler changes the number of replicas of whatever has a
// scale subresource, so that its metrics come close to their targets.
//
//	every 15 s: scale ── selector ── pods, metrics ── propose, the highest counts ── stabilize, limit ── scale
//
//	reconcile.go   one autoscaler: from its scale to its scale
//	metric.go      what each type of metric proposes, and how it is reported
//	propose.go     the arithmetic, of pods.go's groups: which pods' figures count
//	limit.go       how far and how fast replicas may change; history.go remembers for it
//	source.go      reads metrics.k8s.io, custom.metrics.k8s.io and external.metrics.k8s.io
//	scale.go       reads and writes the scale of any kind
//
// The rules, conditions and events are those of upstream's controller
// (autoscaling/v2; KEP-853 for behavior, KEP-4951 for tolerances, KEP-2021 for zero).
// An autoscaler costs a timer and a few numbers; without one there is nothing.
package horizontalpodautoscaler
