// Package numa tells how a machine's processors and memory lie to each other, from
// /sys/devices/system.
package numa
