// Package probe asks containers whether they have started, are alive and are
// ready, at the times that their specification says.
//
//	kubelet ── Sync(pod, status) ──▶ Prober ── one timer a probe, no goroutine while it waits
//	                                    │ exec, HTTP, TCP, gRPC
//	        ◀── OnChange, Config.Changed┘ only when a result changes
//
// The rules are those of upstream's prober: thresholds count equal results in a
// row, a startup probe holds the others back, a failed liveness or startup probe
// rests until there is a new container, and a result is kept per container ID.
// The first probe comes at the end of the initial delay, not at the first tick after it.
//
// A new way to probe is one file with a function and one line in check.go.
package probe
