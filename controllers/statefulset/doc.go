// Package statefulset keeps the pods of StatefulSets: each has a number, a name
// made of it, a stable network name and claims of its own, which stay when the pod
// is replaced.
//
//	web-0 ─ data-web-0      made in order, each after its predecessor is available
//	web-1 ─ data-web-1      (podManagementPolicy OrderedReady), deleted from the end
//	web-2 ─ data-web-2
//
// One reconciliation: missing pods from the lowest number up, pods too many from
// the highest down, then pods of an old revision from the highest down to the
// partition. With OrderedReady each stops at the first pod that must be waited
// for.
package statefulset
