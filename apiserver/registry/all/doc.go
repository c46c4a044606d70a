// Package all is the explicit list of the built-in resources, and the scheme of
// their types.
package all
