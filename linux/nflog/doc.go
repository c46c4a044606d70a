// Package nflog receives the packets that rules log to an NFLOG group, from
// nfnetlink_log. A group has one listener in a network namespace; nothing
// happens while no rule logs to it.
package nflog
