// Package ratelimit answers with 429 what exceeds a rate, by token buckets: one for
// all requests, or one for each key (a client's address, a header).
//
// The tokens are in a Limiter, which outlives the snapshots: whoever makes snapshots
// keeps the Limiters by name and gives them to the new filters.
package ratelimit
