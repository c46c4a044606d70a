// Package policy is what admission policies have in common: rules in CEL, kept in the
// API itself. Its children are the plug-ins, validating (KEP-3488) and mutating
// (KEP-3962).
//
//	policy    what it is about, conditions, variables, what must hold or be changed
//	binding   puts a policy into force, for a part of the writes, with parameters
//	params    objects of any kind by which rules are adjusted
package policy
