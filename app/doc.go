// Package app is the only place where the parts of Periplus are wired together:
// one plain function per role, start order as data.
//
//	config.go    what can be set, with defaults and one Validate
//	stage.go     runs parts in the order of their dependencies
//	server.go    etcd, API server, controllers, scheduler
//	node.go      container runtime, kubelet, service proxy, DNS
//	up.go        both in one process
//	agent.go     a node of a cluster whose servers are elsewhere
//	cluster.go   what is the same on all nodes, and how they learn it
//	daemon.go    each part alone
//
// To add a part: a stage in server.go or node.go.
package app
