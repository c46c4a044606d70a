// Package shutdown ends the node's pods before the machine goes down, those of low
// priority first (KEP-2000, KEP-2712).
//
//	lock of the login manager ─► the machine's shutdown waits
//	shutdown begins ─► node not ready ─► groups of pods end, each within its time ─► lock given back
//
// On a machine without systemd's login manager it does nothing.
package shutdown
