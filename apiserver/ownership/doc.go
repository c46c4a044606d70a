// Package ownership knows who owns which field of an object (metadata.managedFields,
// KEP-555) and notes it at every write, fast enough for every write.
//
//	before ──┐
//	         ├─ Compare ─► taken, removed ──┐
//	after  ──┘                              ├─ Owners ─► entries of the object that is stored
//	entries of before ──────────────────────┘
//
// Compare walks two Go objects of the same kind by a plan that is made once per Go
// type: fields by their JSON names, maps and structs field by field, lists as one
// value unless the kind says that their items have keys (zz_generated.shapes.go). What
// it finds is written at once in the form in which it is stored (FieldsV1), sorted, so
// that there is no tree of paths; sets are added and subtracted in that form, too.
// Objects of the same shape have the same sets, and share them.
//
// The rules are those of sigs.k8s.io/structured-merge-diff (typed.Compare, merge.Updater),
// which tests compare every result with. That library still does what is rare: merging what is applied, and
// comparing custom resources, whose types are known at run time only.
//
// A kind that is added to the server is added to the table by go generate.
package ownership

//go:generate go run ./internal/shapes/generate zz_generated.shapes.go
