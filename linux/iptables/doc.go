// Package iptables runs the machine's iptables-save and iptables-restore: the only
// interface to iptables rules that stays the same over kernels and over both of
// its implementations, legacy and nf_tables. Rules go in as text, one transaction
// a table.
package iptables
