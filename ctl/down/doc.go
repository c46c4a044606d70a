// Package down is "peri down": it ends the cluster of this machine with all its
// containers, networks and rules. The state stays, unless --purge is given.
package down
