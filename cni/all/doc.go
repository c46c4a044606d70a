// Package all is the list of CNI modes.
package all
