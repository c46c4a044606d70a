// Package image keeps a node's images: it pulls, imports, exports, lists and
// removes them, and has their layers unpacked by a snapshotter.
//
//	registry ─ mirrors ─┐                    ┌─► blobs/sha256/<hex>   as they came, fsynced
//	archive (tar, gz) ──┼─► Store.ensure ────┼─► snapshotter          unpacked while they arrive
//	the running binary ─┘   (one per digest) └─► records/<id>.json    names → manifest → layers
//
// The order of writing is the order of trust: a record is written after its
// blobs and layers are there, so that after a power loss a record never names
// a thing that does not exist; half-written things have no record and are
// removed by Open. Blobs are checked against their digest before use.
//
// Store implements cri.Images. What the CRI lacks (import, export) is the
// child admin: an HTTP handler for a local socket, and its client.
//
// Children: blob is the content store, registry speaks the distribution
// protocol. Add a source of images as another file beside pull.go and
// import.go that ends in Store.ensure.
package image
