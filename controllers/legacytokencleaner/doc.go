// Package legacytokencleaner is the legacy-service-account-token-cleaner (KEP-2799):
// tokens in Secrets that were once made for service accounts by themselves, and that
// nobody has used for a year, are first refused (the label
// kubernetes.io/legacy-token-invalid-since) and after another year deleted. Such a
// Secret is listed by its account; one that a person made is not touched. When a token
// was last used is what the API server notes in kubernetes.io/legacy-token-last-used.
//
//	unused for a year, by no pod ── invalid-since: today ── a year ── deleted
package legacytokencleaner
