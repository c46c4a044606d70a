// Package hollow makes nodes that exist only in the API: to the API server,
// controllers and scheduler they are nodes with kubelets, on which nothing runs. A
// thousand of them cost one process and one connection.
//
//	            ┌─ register ─► Node (capacity, addresses, conditions)
//	Fleet.Run ──┼─ beats ────► Lease every 10 s, spread out; status every 5 min
//	            ├─ nodes ────◄ watch by label: deleted, or told to be silent
//	            └─ pods ─────◄ one watch for all nodes: spec.nodeName!=
//	                  │
//	                  └─ work ─► pods/status: Running and Ready after a delay, Succeeded
//	                             DELETE with grace 0 when a pod has stopped
//
// A pod is level-triggered: next (pod.go) compares the newest version with what the
// record knows and says what to write and when. Records are small; the object itself
// is kept only while a write is due. What is due waits in an agenda: one timer and a
// fixed number of writers, however many nodes there are.
//
// The server is spared: one watch instead of one for each node, since a watch that
// selects is a comparison for each event; one write for a start, made with the version
// that the watch has brought; heartbeats of the same tenth of a second go side by side
// and so into one commit.
//
//	config.go   what can be set, and delay.go its distributions
//	fleet.go    registration, watches, the end
//	node.go     the Node object;  lease.go  its heartbeats
//	pod.go      what a pod's next write is;  status.go  what it says
//	agenda.go   what is due
package hollow
