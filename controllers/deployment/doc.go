// Package deployment rolls Deployments out: it keeps one ReplicaSet for each
// version of the pod template and moves replicas from the old ones to the new.
//
//	Deployment ── template hash ──► newest ReplicaSet   scaled up   ≤ replicas + maxSurge
//	                            └─► older ReplicaSets   scaled down ≥ replicas - maxUnavailable
//
// One reconciliation works on a copy of the Deployment and writes its status (and
// the revision annotation, which travels with it) once at the end, after the
// ReplicaSets were written, which is what the pods wait for.
package deployment
