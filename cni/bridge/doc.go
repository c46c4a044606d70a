// Package bridge is the built-in CNI mode: pods of a node behind one bridge.
//
//	pod netns            node netns
//	eth0 ── veth ──────── peri0 (first address of the node's pod range)
//	default via peri0        │ forwarding
//	                      uplink: masqueraded when it leaves the cluster
//
// Everything is done over netlink in this process; an attachment costs about
// eight messages and no process. Addresses come from a cni.Pool. The table
// periplus-cni (rules.go) holds masquerading and host ports. The ranges of all
// pods have an unreachable route, and the ranges of cluster IPs lead to the
// bridge, where what no Service rule has translated is refused: no packet for
// the cluster leaves the node by its default route, and the node's own
// connections to Services carry an address that pods can answer.
package bridge
