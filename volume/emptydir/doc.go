// Package emptydir is the volume kind emptyDir: an empty directory that lives as
// long as the pod, on the node's disk or in memory (tmpfs, bounded by sizeLimit).
package emptydir
