// Package defaultpreemption is the plug-in DefaultPreemption: when no node fits a pod,
// it looks for a node that would fit without some pods of lower priority, deletes those
// and nominates the node for the pod.
//
//	PostFilter ─► eligible? ─► dry run per node (dryrun.go) ─► best candidate (pick.go)
//	                                                             │
//	              pod waits, nominated ◄── victims are deleted ◄─┘ (evict.go)
package defaultpreemption
