// Package controllers is act 2: the loops that turn what people declared into
// what the rest of the cluster acts upon. This package is the contract and the
// engine; each controller is a child package.
//
//	informers ── events ──► Watch/Owner handlers ── keys ──► Queue ──► N workers
//	                                                          ▲            │
//	                                     back-off, deadlines ─┘   Reconcile(ctx, key)
//	                                                                       │
//	   API server ◄── creations (in parallel), minimal status writes ──────┘
//
// A Reconciler is level-triggered: it gets a key, reads everything it needs from
// the listers, and does what is missing. Events only choose keys. Nothing here
// polls or resyncs: a timer exists only where an object has a deadline, so an
// idle cluster costs nothing.
//
// A cache may lag behind the controller's own writes. Expectations remember the
// children that a controller created or deleted until the cache has shown them,
// so that no child is ever made twice.
//
// To add a controller: a child folder with a function returning a Controller,
// and one line in all/all.go.
package controllers
