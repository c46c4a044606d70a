// Package loop turns files into block devices (loop(4)): attach, find again
// after a restart, grow, detach.
//
// In: paths of files. Out: paths of devices, /dev/loop7. It keeps no state: what
// is attached is read from /sys/block.
package loop
