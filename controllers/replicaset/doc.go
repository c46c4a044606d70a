// Package replicaset keeps the declared number of pods for each ReplicaSet. The
// loop is controllers.ReplicaReconciler, shared with ReplicationController; here
// is what is particular to the kind.
package replicaset
