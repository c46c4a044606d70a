// Package nodelifecycle watches the nodes' heartbeats and shows their state as
// taints.
//
//	lease renewed, status posted ──► last seen
//	                                    │ silent for the grace period
//	                                    ▼
//	      conditions Ready, …Pressure = Unknown ──► pods not ready
//	                                    │
//	      conditions ──► taints NoSchedule, and NoExecute for not-ready and unreachable
//
// There is one timer for each node, due at the end of its grace period; a lease
// that is renewed in time only moves the time last seen. NoExecute taints spread
// at a limited rate for each zone, and not at all while every node is silent: then
// it is more likely that the control plane was cut off.
package nodelifecycle
