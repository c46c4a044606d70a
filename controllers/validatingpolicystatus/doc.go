// Package validatingpolicystatus checks the types in the expressions of validating
// admission policies against the kinds that they are about, and tells in the policies'
// status what does not fit. It costs nothing while there are none.
package validatingpolicystatus
