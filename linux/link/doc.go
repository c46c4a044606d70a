// Package link makes and changes network interfaces, addresses, routes and
// network sysctls over rtnetlink, without starting a process.
//
// A Conn belongs to the network namespace of the thread that opened it, or to
// the one that it was opened at, whichever thread uses it later.
package link
