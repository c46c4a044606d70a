// Package snapshot keeps the file systems of images and containers.
//
// A layer is unpacked once, into a directory of its own that is named after its
// chain ID (OCI image-spec, "Layer ChainID"), and shared by every image and
// container that stands on it. A container gets a writable top of its own.
//
//	image ── Stage, Commit ──► layers/<chain>/fs ─┐ lower, shared, never written
//	                           layers/<chain>/fs ─┤
//	sandbox ── Prepare ──────► active/<id>/fs ────┘ upper
//	        ── Mount ────────► <target>            the root file system
//
// The contract is Snapshotter; overlayfs is the implementation. A further one
// (btrfs, native copies, a remote lazy one) is another child folder with a
// constructor that returns a Snapshotter.
//
// # Life of a layer
//
// A layer lives as long as something needs it: a pin (Commit and Acquire set
// one, Release takes it back), a layer above it, or a prepared container. After
// a start nothing is pinned; whoever owns the images acquires what it knows and
// calls Collect, which drops the rest.
package snapshot
