// Package containers is the embedded container runtime: cri.Runtime over an OCI
// runtime (crun or runc) and one monitor process a node.
//
//	kubelet ── cri.Runtime ── Runtime ─┬─ sandbox   namespaces, files, cni.Network
//	                                   ├─ oci       CRI configuration → config.json
//	                                   ├─ ImageStore, Snapshots (children image, snapshot)
//	                                   ├─ monitor   starts, watches, logs: survives us
//	                                   └─ stream    exec, attach, port-forward
//
// What is where:
//
//	<state>/sandboxes/<id>/   sandbox.json, resolv.conf, hostname, hosts, shm/
//	<state>/containers/<id>/  container.json, config.json, rootfs/, pipes,
//	                          monitor.json and exit.json (the monitor's)
//	<state>/bin/              the monitor program
//	<run>/{net,ipc,uts}ns/<id>   pinned namespaces
//	<run>/oci/                the OCI runtime's state
//	<run>/monitor.sock
//
// Records are written before what they describe is made and removed after it is
// gone, so a restart finds everything again: New reads the records, Run asks
// the monitor which containers run and how the others ended (supervise.go), and
// only then are calls served. The order of locks is container.op or sandbox.op,
// then Runtime.mu, then container.mu.
//
// One file a group of RPCs: sandbox_*.go, container_*.go, exec.go, stats.go,
// status.go, events.go.
package containers
