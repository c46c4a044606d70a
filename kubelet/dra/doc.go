// Package dra prepares the devices of resource claims with their drivers (KEP-4381).
//
//	driver ── plugins_registry ─► Drivers.Add
//	pod starts ─► its claims are read ─ NodePrepareResources ─► CDI names, by request
//	container made ─► Devices: those of its claims
//	pod ended ─ NodeUnprepareResources, when no other pod has the claim ─► forgotten
//
// What was prepared is kept in a file: a later life of the kubelet gives it back.
package dra
