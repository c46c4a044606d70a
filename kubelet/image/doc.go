// Package image makes a container's image present before it is created, by the
// rules of its pull policy, with the pod's pull secrets and with back-off.
//
//	Ensure ─ ImageStatus ─┬─ present and no pull wanted ─► Result
//	                      ├─ backing off ─► ImagePullBackOff
//	                      └─ PullImage with each matching credential ─► Result
package image
