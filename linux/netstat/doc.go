// Package netstat reads the counters of network interfaces.
package netstat
