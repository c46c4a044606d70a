// Package cni is the contract between a container runtime and the thing that
// gives a pod its network, after the Container Network Interface 1.1.
//
//	containers/sandbox ── cni.Network ──┬── cni/bridge (built in, netlink)
//	                                    └── cni/exec   (third-party plug-ins)
//
//
//	Node informer ── Follow ── Backbone ──┬── cni/vxlan  (tunnels)
//	                                      └── cni/hostgw (plain routes)
//
// A Network attaches the pods of one node, a Backbone connects the nodes.
// A mode is a child folder and one line in cni/all; cni/cnitest is the suite
// that each must pass.
package cni
