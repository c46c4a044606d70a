// Package affinity gives containers processors and memory of their own, near to each
// other and to their devices: upstream's static CPU manager, static memory manager and
// topology manager.
//
//	pod ─► hints of processors, memory, devices ─► merge ─► policy: may it run? where?
//	    ─► exclusive processors, NUMA nodes of memory ─► state files ─► Of(pod, container)
//
// Only containers of Guaranteed pods with whole processors get some for themselves; all
// others share what is left, which changes under them: Changed.
//
//	config.go  policies
//	hint.go    masks of NUMA nodes, merging, topology policies
//	cpu.go     which processors
//	memory.go  which nodes of memory
//	affinity.go admission, state
package affinity
