// Package local is the built-in CSI driver local.csi.periplus.io: volumes on the
// disk of one node, each with a size that is enforced.
//
// A volume is a sparse file with a file system of its own (ADR 0013), attached to
// a loop device while it is in use:
//
//	<dir>/volumes/<id>/volume.json   what it is; there only when it is complete
//	<dir>/volumes/<id>/data.img      the disk; a directory "data" without size limit, if so asked
//	<dir>/snapshots/<id>/…           the same for snapshots
//	<dir>/volumes/.new-<id>          being made: a crash leaves it, Open removes it
//
// Everything is read from the disk and the kernel, so that a restart of the
// process changes nothing: there is no goroutine, and no memory per volume. A
// claim is on one node; the topology key says on which.
//
// Parameters of storage classes: fsType (or csi.storage.k8s.io/fstype) is ext4 or
// xfs; backing is image (the default) or directory.
package local
