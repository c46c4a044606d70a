// Package sandbox makes what the containers of one pod share: namespaces pinned
// by bind mounts, /dev/shm, /etc/hostname, /etc/hosts, /etc/resolv.conf, and the
// attachment to the network. There is no pause process.
//
//	Make ─┬─ namespaces (net, ipc, uts) ── cni.Network.Add
//	      └─ files, shm                       (at the same time)
//
// A pod that shares its PID namespace needs a first process in it; that is an
// ordinary container which the package containers starts beside the others.
package sandbox
