// Package scheduler is act 4: it gives each pending pod a node.
//
//	informers ──► handlers ──► Queue ── Pop ──► cycle ──► assume in Cache
//	                │            ▲                │             │
//	                ▼            │ requeue        │ no node     ▼ one goroutine a pod
//	              Cache ── Snapshot (copy on      └─► failure   Permit, PreBind, Bind
//	                       write)                     handler   (pods/binding)
//
// One goroutine decides (Scheduler.Run); everything that talks to the API
// server happens beside it. Nothing polls: a pod that found no node waits in
// the queue until an event arrives that one of the plug-ins that rejected it
// has asked for (KEP-4247), and timers exist only while a back-off or the
// five-minute safety net for waiting pods runs.
//
// The hot path, for a pod on 5,000 nodes:
//
//  1. PodInfo holds what the plug-ins need from a pod as numbers, computed once
//     when the informer delivers it: requests as a vector over interned resource
//     indexes, host ports, parsed affinity terms.
//  2. Snapshot is a slice of *NodeInfo that are immutable once shared. The cache
//     clones a NodeInfo only when it changes after it was shared, and a new
//     snapshot costs as much as the number of nodes that changed.
//  3. Filters run from a rotating start index and stop at the number of
//     feasible nodes that upstream's adaptive formula asks for.
//  4. A pod equal to the previous one in all that plug-ins look at reuses the
//     candidates of the previous one (batch.go): only nodes that changed in
//     between are filtered and scored again, the best one is at the top of a heap.
//
// The contract of plug-ins is in plugin.go. A plug-in is a child package with a
// New function that returns a Factory; the list of those in use, in order and
// with their weights, is in scheduler/all. To add one, write the package and add
// its line there. Helpers to test one without a cluster: scheduler/schedulertest.
package scheduler
