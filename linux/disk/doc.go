// Package disk makes, mounts and grows file systems on block devices, and copies
// large sparse files.
//
// In: paths of devices and directories. Out: plain errors that name them. mkfs and
// e2fsck are programs of the machine; everything else is system calls.
package disk
