// Package overlayfs is the snapshotter that keeps each layer in a directory and
// lets the kernel's overlayfs put them together.
//
//	layers/<32 hex of the chain ID>/fs          the layer, whiteouts in overlayfs's form
//	                               /layer.json  chain ID, parent, size, boot
//	                               /synced      it is on the disk
//	active/<container>/fs, /work                upper and work directory (absent: read-only)
//	                  /parent                   link to the top layer
//	tmp/<random>                                being made, or being deleted
//	empty/0, /1                                 stand below layers that are too few for the kernel
//
// Everything is made below tmp and renamed into place, so that what has a name
// is whole. Nobody waits for the disk: a layer is used at once, a goroutine that
// exists only while there is something to do calls syncfs and leaves the mark
// "synced". After a crash of the process the page cache still has everything;
// after a crash of the machine (another boot ID) layers without the mark are
// dropped and unpacked again from their blobs.
package overlayfs
