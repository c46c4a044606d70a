// Package lab makes several machines on one: each is a set of namespaces (network,
// mounts, processes, host name, IPC) with a first process of its own, joined by
// virtual cables to a segment. It knows nothing of Kubernetes.
//
//	this machine                segment (a bridge)
//	   │ cable, masquerading ──────┤            visible: behind "peri up --nodes N"
//	   ✕ no way out                │            hidden: behind tests
//	machine a: uplink ── cable ────┤
//	machine b: uplink ── cable ─✂──┘            Cut and Heal
//
// What runs in a machine dies with its first process, and with it the machine's
// mounts, interfaces and rules. Cgroups and files are the caller's to remove.
//
//	segment.go   the network between machines
//	machine.go   a machine: boot, power off, commands in it
//	cable.go     its cable, cut and healed
package lab
