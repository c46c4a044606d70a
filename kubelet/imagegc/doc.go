// Package imagegc removes images that nobody uses when the disk fills up, or when
// they have not been used for too long.
//
//	Tick ─ usage ≥ high ─► least recently used first, down to low
//	     └ unused for longer than the maximum age ─► removed
//
// An image is in use while a container of any state has it or a pod of the node
// names it, pinned ones always are. Those younger than the minimum age stay.
package imagegc
