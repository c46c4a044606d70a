// Package all is the list of proxy backends.
package all
