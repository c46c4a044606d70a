// Package admission is the contract of admission plug-ins: they see every write
// after authorization, first those that may change the object, then, after its
// validation, those that may only refuse it.
//
//	decode ── default ── Mutators ── validate ── Validators ── store
//
// A plug-in is a child folder and one line in admission/all.
package admission
