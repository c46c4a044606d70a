// Package persistentvolume binds claims to volumes.
//
//	claim ──► a volume that fits? ──► PV.claimRef ─► PV Bound ─► PVC.volumeName ─► PVC Bound
//	             │ no
//	             ├─ class waits for the first consumer, no node chosen: wait
//	             └─ class has a provisioner: name it in an annotation, it makes the volume
//
// A binding is four writes in that order, each of which can be repeated: after a
// crash the next reconciliation goes on where the last one ended. Both directions
// are checked against each other, so that a volume has one claim at most.
// Volumes whose claim is gone are kept (Retain), or deleted by their provisioner.
//
// A key without a namespace is a volume, one with a namespace a claim.
package persistentvolume
