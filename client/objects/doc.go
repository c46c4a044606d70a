// Package objects is how one follows every object of the cluster, whatever its kind:
// the garbage collector and quotas do.
//
//	Source ── Upsert, Gone, Resources, Synced ──► Sink
//
// The API server is a Source, out of its own watch caches and without a copy;
// controllers.NewMetadataSource is one over any connection.
package objects
