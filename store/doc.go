// Package store is the contract between the API server and what keeps its
// objects: a map of keys to bytes with one global revision, compare-and-swap
// writes and watches from a revision, as etcd has them.
//
//	store/etcd      embedded or external etcd, the real one
//	store/mem       in memory, for tests and api-only servers
//	store/storetest the suite that both must pass
//
// Revisions start above 0 and grow by one with every successful write.
package store
