// Package mutating is the admission plug-in MutatingAdmissionPolicy (KEP-3962): rules in
// CEL, kept in the API itself, that change what is written, by an apply configuration
// (merged as server-side apply merges) or by a JSON patch.
//
//	policies by name ─ bindings ─ params ─▶ conditions ─▶ mutations in their order
//
// A policy with reinvocationPolicy IfNeeded is asked once more when another mutator has
// changed the object after it.
package mutating
