// Package tour is the grand tour: the whole story on one server and two agents, typed
// as a person would type it, with a proof at each stage. docs/tour.md walks the same
// steps by hand; the manifests are in manifests/.
//
//	outside ── curl ──► load balancer :8080 ──► ingress :80 ──► Service ──► sidecar ═mTLS═► pod
//	   └ images                     server, one, two (test/netlab, no way out)
//
//	tour.go      the machines, from the first to the last
//	stages.go    the table of stages; stages_*.go what they do
//	shell.go     commands typed, and what is printed of them
//	count.go     what is made of many answers
//
// A new stage is a function and a line in the table. It returns an error, never waits
// for time to pass, and says what it has proved.
package tour
