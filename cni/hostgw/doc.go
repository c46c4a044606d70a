// Package hostgw is the backbone of plain routes: each node is the gateway to
// its own pods. It adds nothing to a packet and needs nodes that share a network
// segment.
//
//	route 10.42.1.0/24 via 192.0.2.11 dev eth0
package hostgw
