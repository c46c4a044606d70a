// Package residency gives memory back to the kernel that a process needed only
// while it started.
package residency
