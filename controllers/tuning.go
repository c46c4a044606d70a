package controllers

import "time"

// Autoscaling is how horizontal pod autoscalers look and decide where they do not say
// otherwise.
type Autoscaling struct {
	Period                 time.Duration // between two looks at an autoscaler
	Tolerance              float64       // of the ratio of usage and target: 0.1 is 10 %
	DownscaleStabilization time.Duration // how long a higher recommendation holds
	// CPUInitialization is how long after its start a pod's processor time counts only
	// while it is ready.
	CPUInitialization time.Duration
	// InitialReadiness is how long after its start a pod that has become unready counts
	// as one that has never been ready.
	InitialReadiness time.Duration
}

// DefaultAutoscaling are upstream's values.
func DefaultAutoscaling() Autoscaling {
	return Autoscaling{
		Period: 15 * time.Second, Tolerance: 0.1, DownscaleStabilization: 5 * time.Minute,
		CPUInitialization: 5 * time.Minute, InitialReadiness: 30 * time.Second,
	}
}

// Eviction is how fast pods are evicted from the nodes of a zone that do not answer.
type Eviction struct {
	Rate          float64 // nodes a second in a healthy zone; 0: none
	SecondaryRate float64 // the same in an unhealthy zone of a large cluster
	UnhealthyZone float64 // the part of a zone's nodes, three at least, from which on it is unhealthy
	LargeCluster  int     // nodes; an unhealthy zone with no more evicts nothing
}

// DefaultEviction are upstream's values.
func DefaultEviction() Eviction {
	return Eviction{Rate: 0.1, SecondaryRate: 0.01, UnhealthyZone: 0.55, LargeCluster: 50}
}
