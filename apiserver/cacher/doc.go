// Package cacher is the watch cache: every object of the store, decoded once,
// shared by all readers, and a log of recent changes that watches read from.
//
//	store.Watch ──► Set ──► Cache (one a resource) ──► tree of *Object    get, list
//	   ▲                      │                  └───► ring of *Event     watch
//	   │                      └── Expect: the writer's decoded object
//	writer ── store.Create … ─────┘
//
// A writer announces the object that it is about to store (Expect), so that the
// event needs no second decode, and gets back the cached object under its
// revision. A watch is a position in the ring: nothing is queued per watcher, one
// that falls behind the ring is cut off, none blocks another. The ring holds what is
// younger than 75 s, within bounds, so that a burst costs memory only for that long.
//
// All objects and encodings are immutable once in the cache.
package cacher
