// Package bin carries the built monitor program inside peri, compressed, and
// extracts it once per version.
//
//	make → go generate → monitor-<arch>.gz ── go:embed ── Extract ──► <state>/bin/monitor-<digest>
//
// The compressed programs are not committed. Without them everything builds,
// and Extract returns ErrMissing.
package bin
