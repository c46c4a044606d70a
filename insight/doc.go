// Package insight explains a cluster. It has what its children share:
//
//	read.go      the objects of a cluster, read once    client-go → Snapshot
//	snapshot.go  the objects by kind and name           Snapshot → Pods, Services, …
//	relate.go    what belongs to what                   selectors, owners, references
//	finding.go   what is wrong, why, and what mends it
//
// Children: why explains one object ("peri why"), lint checks manifests and
// clusters for what production needs ("peri lint"). Their rules are pure: a
// Snapshot goes in, findings come out; nothing in them asks a cluster.
package insight
