// Package nft speaks the nf_tables netlink protocol: transactions on one table,
// and dumps of what the kernel holds.
//
//	Batch ── tables, chains, sets, elements, rules ──▶ Conn.Commit ──▶ kernel
//	                                                   Conn.Rules, Elements, … ◀── kernel
//
// It encodes straight into one buffer, with up to a thousand set elements a
// message and one acknowledgement a transaction, because Service rules for
// 250,000 endpoints have to be in place within a second. Rules are built
// expression by expression (Rule), in the order in which the kernel runs them.
// The protocol is that of linux/netfilter/nf_tables.h.
//
// A Conn belongs to the network namespace of the thread that opened it,
// whichever thread uses it later.
package nft
