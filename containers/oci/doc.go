// Package oci turns a CRI container configuration, its image's configuration
// and its sandbox into a runtime-spec configuration. It is a pure function but
// for three look-ups: users in the image's root file system, device nodes, and
// seccomp profiles on disk.
//
//	CRI ContainerConfig ─┐
//	image config ────────┼─► Spec(Input) ─► config.json of a bundle, for crun or runc
//	sandbox namespaces ──┘
//
// One file a concern: process.go (arguments, environment), user.go, mounts.go,
// capability.go, seccomp.go, device.go, resources.go. Defaults are those that
// people know from Docker and containerd.
package oci
