// Command bench measures a peri binary from outside, as its users meet it, and
// prints a table: what was measured, the target, and what upstream's components
// needed on a machine of the same size (2 cores, etcd 3.7, containerd 2.4, runc).
//
//	start   cold start to /readyz and to a Ready node: empty state directory, and again
//	idle    memory, CPU, bytes written, wake-ups of a cluster nobody uses
//	run     Deployment and Service created → pod Ready → first answer of the Service
//	runtime  through the CRI: an exec, what an idle pod costs, how fast a container may log
//	scale   Deployment 0 → 50, idle with 50 pods, 50 → 0
//	api     operations per second and latencies with 16 clients, 200 watchers
//	load    memory after all that
//	verbs   each verb with 16 clients that only send and receive bytes, in protobuf and
//	        JSON, against the rate at which etcd alone writes in the same run
//	watchers  1,000 watchers that see 1,000 updates
//	large   50,000 pods: memory of each, lists; a start with 100,000 objects
//	hollow  1,000 nodes that exist only in the API, and 10,000 pods on them
//
// Every part runs in a machine of test/netlab; nothing is left behind. Figures are
// printed and never judged: they depend on the machine and on what else it does.
//
//	go run ./test/bench -peri bin/peri [-parts start,idle,…] [-o figures.json]
//
// A new measurement is a function(*bench) error in a file of its own and a line
// in parts (main.go).
package main
