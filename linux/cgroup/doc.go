// Package cgroup reads, empties and removes control groups on all three
// layouts: v1 (one hierarchy a controller), v2 (one unified hierarchy) and
// hybrid (v1 with an empty unified hierarchy beside it).
//
// A group is named by its absolute path within the hierarchies, "/kubepods/pod1/c1";
// the functions find its directory in each. Limits of containers are set by the
// OCI runtime, not here.
package cgroup
