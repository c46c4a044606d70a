// Package netlab gives tests a machine to run a node on, inside this one: its own
// network, mounts, processes, host name and cgroup, and no way out.
//
//	test process ── pipe ──► sh (PID 1 of the machine), ends when the pipe does
//	      │                   │  lo, uplink 198.51.100.10/24 ── wire (nobody there)
//	      │                   │  /etc/resolv.conf without resolvers
//	      └── nsenter ────────┴► peri up --state-dir <dir>/state …
//	                           ► anything: Machine.Command
//
// Whatever a test leaves running dies with the machine, also when the test
// process is killed. Machines are lab.Machines: several in a lab.Segment are a cluster
// of several nodes (Server, Agent). Before that, Leftovers tells what peri should have removed
// and did not. Machines are independent of each other; several run at once.
//
//	machine.go    the machine, commands in it, its end
//	peri.go       the peri that runs in it: start, ready, stop, kill -9
//	client.go     connections and clients from the test process into it
//	watch.go      commands that run until they say what is waited for
//	leftovers.go  what is found after "peri down"
package netlab
