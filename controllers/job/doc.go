// Package job runs pods to completion.
//
// Every pod of a Job carries the finalizer batch.kubernetes.io/job-tracking until
// it is counted, so that no result is lost and none counts twice, whatever dies in
// between (KEP-2307):
//
//	pod ended ──► 1. status.uncountedTerminatedPods += its UID      (one write)
//	              2. finalizer off the pod
//	              3. counter + 1, UID off the list                  (one write)
//
// After a crash between 1 and 3 the list says which pods to go on with: those
// without finalizer count now, the others lose it first. Successes of an Indexed
// Job need no list: completedIndexes is a set.
package job
