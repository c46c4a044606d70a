// Package program extracts the small programs that peri carries inside, compressed.
//
//	go generate → <name>-<arch>.gz ── go:embed ── Extract ──► <dir>/<name>-<digest>
package program
