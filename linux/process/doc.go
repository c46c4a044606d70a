// Package process is what the kernel knows about single processes: identity
// that survives reuse of pids, waiting without being the parent, signals by
// name, capabilities, OOM scores, terminals and named pipes.
//
// A pid alone names nothing for long; pid and start time together do. Whoever
// stores a pid stores both (Identity) and asks Same before believing it.
package process
