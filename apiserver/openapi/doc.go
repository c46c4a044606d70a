// Package openapi describes the API (OpenAPI v2 and v3) from the resources that
// are served, their Go types and the documentation that comes with these.
//
//	listings ── kinds ── library ── definitions ──┐
//	      └──── operations ───────── paths ───────┴── v3 document a group version, one v2 document
//
// Documents are built on first use, kept compressed, and built again when their
// resources have changed. That of everything (v2) is joined from compressed parts, one
// a group version, so that a new definition of custom resources costs no more than its
// own part (whole.go, parts.go, packed.go). ETags are made from what documents are built of, so
// that the index of all documents costs nothing.
//
// What comments of the API types say and reflection does not show is read from
// zz_generated.markers.txt. A group that is added to the server must be added to
// internal/markers, too.
package openapi

//go:generate go run ./internal/markers zz_generated.markers.txt
