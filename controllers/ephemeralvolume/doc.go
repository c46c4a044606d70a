// Package ephemeralvolume makes the claims of generic ephemeral volumes: a claim
// for each, owned by its pod, so that both end together.
package ephemeralvolume
