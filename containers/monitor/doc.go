// Package monitor is the one process per node that is the parent of all
// containers, and the way to talk to it.
//
//	peri ── Client ── unix socket ── Server (cmd/helper/monitor)
//	                                   ├─ forks the OCI runtime; being child subreaper
//	                                   │  it becomes the parent of every container
//	                                   ├─ named pipes, ttys → CRI log files, attached clients
//	                                   └─ wait status → exit.json → event to watchers
//
// It is a program of its own so that peri can stop, crash or be upgraded while
// containers run: it knows nothing of Kubernetes, needs a few MB, and sleeps
// unless a container writes or ends.
//
// What it knows of a container is in the container's directory, written before
// anybody is told: monitor.json (what was started) and exit.json (how it
// ended). A monitor that dies loses nothing but the exit codes of containers
// that end before the next one is up, and on Linux 6.15 and later not even
// those that end afterwards: it opens the same named pipes, which the
// containers hold open read-write, and watches their pids through pidfds.
//
// One connection is one request: a length-prefixed JSON message, file
// descriptors beside it where a process needs them, and one answer; watch, exec
// and attach then keep the connection (wire.go).
//
// It stays free of Kubernetes imports; bin holds the built program for embedding.
package monitor
