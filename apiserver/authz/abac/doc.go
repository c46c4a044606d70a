// Package abac is the authorization mode ABAC: a file with one policy a line, as JSON, of
// the kind Policy in abac.authorization.kubernetes.io/v1beta1 or, without a kind, in the
// older form. Empty lines and those that begin with # do not count. A request is allowed
// when one policy matches it; no policy forbids.
package abac
