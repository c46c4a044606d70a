// Package vxlan is the backbone of tunnels: packets between pods of different nodes
// travel in UDP between the nodes (RFC 7348), over whatever network is between
// them.
//
//	route      10.42.1.0/24 via 10.42.1.0 dev peri.vx onlink src 10.42.0.1
//	neighbour  10.42.1.0 is at 0a:59:c0:00:02:0b                (permanent)
//	forwarding 0a:59:c0:00:02:0b is behind 192.0.2.11           (permanent)
//
// All three follow from the peer's node object: the hardware address of a tunnel end is
// derived from its address, so that nothing needs to be announced. The device is
// made with the first peer: a cluster of one node has none.
package vxlan
