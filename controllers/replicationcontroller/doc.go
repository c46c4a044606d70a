// Package replicationcontroller keeps the declared number of pods for each
// ReplicationController. The loop is controllers.ReplicaReconciler, shared with
// ReplicaSet; here is what is particular to the kind.
package replicationcontroller
