// Package checkpoint lets a node start without its server: it keeps on disk what the
// server last said, and answers from there until the server answers itself.
//
//	informer ──► Remembered ──► API        list: the API, else what is kept
//	                 │                     watch: waits for the API, then tells how it
//	                 ▼                            differs from what is kept, then follows it
//	               Store  (bbolt, one file, 0600)
//	                 ▲
//	client  ──► Reads ────────► API        a single object or a token: the API, else what is kept
//
// What an informer holds from an earlier life is corrected by ordinary events as soon
// as the API has been listed: an object that was deleted meanwhile is a deletion like
// any other, and one that did not change is no event at all. Nothing is deleted before.
//
// Source makes such informers of the kinds that a node needs: its pods, Nodes, Services,
// EndpointSlices, NetworkPolicies and what these select. A new kind is one line there.
//
// Writes are gathered for a second and made in one transaction, and what does not differ
// from what is on disk is not written: heartbeats cost nothing. Without changes nothing
// runs. Managed fields are not kept.
package checkpoint
