// Package validating is the admission plug-in ValidatingAdmissionPolicy
// (KEP-3488): rules in CEL, kept in the API itself, that writes must satisfy.
//
//	policy: constraints, conditions, variables, validations ── compiled when first needed
//	binding: further constraints, parameters, what a violation leads to
//
// Without a binding a write costs two comparisons of numbers.
package validating
