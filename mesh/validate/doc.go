// Package validate checks Istio's resources as Istio does, and in its words: a
// validating webhook that API servers call before an object is kept. The rules are
// pure functions that return every mistake, one file a kind.
package validate
