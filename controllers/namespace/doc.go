// Package namespace empties a namespace that is being deleted and then lets it go.
//
//	deletionTimestamp ──► pods ──► everything else that discovery lists ──► finalizer removed
//
// What remains (objects with finalizers, pods in their grace period) shows in the
// conditions NamespaceContentRemaining and NamespaceFinalizersRemaining. The loop
// is woken by pods that end and by watches on what remains; where these fail, it
// looks again after a growing delay.
package namespace
