// Package podcgroup makes the cgroups that pods live in, under the names that
// upstream's cgroupfs driver uses:
//
//	<root>/kubepods/pod<uid>               Guaranteed
//	<root>/kubepods/burstable/pod<uid>
//	<root>/kubepods/besteffort/pod<uid>
//
// on cgroup v2, on the controllers of v1, and on hybrid machines (v1 controllers
// and an empty v2 tree). Containers' cgroups below are the runtime's.
package podcgroup
