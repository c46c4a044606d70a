// Package bin carries the built sidecar program inside peri, compressed, and extracts
// it when the first pod of a mesh needs it on this node.
//
//	make → go generate → sidecar-<arch>.gz ── go:embed ── Extract ──► <state>/bin/sidecar-<digest>
//
// The compressed programs are not committed. Without them everything builds, and
// Extract returns ErrMissing.
package bin
