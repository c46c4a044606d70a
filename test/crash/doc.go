// Package crash kills peri with SIGKILL while everything happens at once, starts it
// again on the same state directory, and compares with what was acknowledged.
//
//	writers ──► API     each answer is entered in a ledger
//	   │ after a random number of answers: kill -9, now and then once more
//	   ▼         while it starts
//	peri up
//	   │ at once:             every acknowledged write is there, steady containers run on
//	   │ when all is settled: each ReplicaSet has had its number of pods and never more,
//	   ▼                      each pod one sandbox and one container, nothing is left over
//	next round
//
//	ledger_test.go   what must be there
//	writers_test.go  those who write
//	settled_test.go  waiting for the cluster to come to rest; pods per ReplicaSet
//	node_test.go     containers, sandboxes, mounts, cgroups, addresses
package crash
