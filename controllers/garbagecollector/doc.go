// Package garbagecollector deletes objects whose owners are gone, of every kind,
// custom ones included.
//
//	objects.Source ── metadata ──► graph: UID ─► node{owners, dependents}
//	                                │ what changed
//	                                ▼
//	                  queue of UIDs ──► look at the node, act
//
// What a node needs depends only on the graph:
//
//	orphan finalizer          dependents lose their reference to it, then it goes
//	foregroundDeletion        dependents are deleted; when none blocks, it goes
//	owners all gone           it is deleted
//	some owners gone          it loses its references to them
//
// The graph may lag, so nothing is deleted on its word: owners that it lacks are
// looked up on the server, and deletions carry the UID and resource version that
// were read.
package garbagecollector
