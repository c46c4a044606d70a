// Package blob stores content under the SHA-256 digest of it.
//
//	Create ── Write… ── Commit(digest) ──► sha256/<hex>
//	   └── Follow: reads the same bytes while they arrive
//
// A blob is checked against its digest, flushed to the disk and only then
// renamed to its name; what has a name is whole. ingest holds what is being
// written and is emptied when the store opens.
package blob
