// Package run is "peri run": it makes a Deployment, a Pod or a Job of an image,
// and on request a Service in front of it.
//
//	flags ── validate ── objects ── print (--dry-run=client) or create
package run
