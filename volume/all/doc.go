// Package all lists the kinds of volumes that a Periplus node has: one line each.
package all
