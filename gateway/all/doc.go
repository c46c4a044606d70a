// Package all lists the sources of the gateway: one line each.
package all
