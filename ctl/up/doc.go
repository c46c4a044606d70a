// Package up is "peri up": a cluster on this machine, in the foreground or, with
// -d, in the background.
package up
