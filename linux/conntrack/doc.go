// Package conntrack removes connections from the kernel's table: those over UDP
// that still point to an endpoint which went away would go there for as long as
// the client keeps sending.
package conntrack
