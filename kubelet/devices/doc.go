// Package devices gives containers the devices of device plug-ins (v1beta1).
//
//	plug-in ── Register on <dir>/kubelet.sock, or by plugins_registry ─► Registry
//	        ◄─ ListAndWatch ── healthy, unhealthy ─► capacity of the node
//	pod admitted ── Allocate ─► GetPreferredAllocation, Allocate ─► checkpoint
//	container made ── For ─► device nodes, mounts, environment, annotations, CDI names
//
// What was allocated is kept in a file, so that a later life of the kubelet gives no
// device twice. Nothing runs but the listener until a plug-in registers.
//
//	registry.go    plug-ins, health, capacity
//	allocate.go    who gets what
//	plugin.go      one plug-in's connection
//	checkpoint.go  what survives
package devices
