// Package all puts the ways of authentication in order.
package all
