// Package answer tells when a pod gave its first answer on the network: the
// last step of a journey.
//
//	Watch(ip) ─▶ set in the table periplus-answer
//	packet from that address, of a connection that somebody else opened, with
//	data ─▶ log to an NFLOG group, out of the set ─▶ Run ─▶ OnAnswer(ip, time)
//
// The kernel takes an address out of the set with the packet that it logs, and
// the table is removed when no address is left in it: afterwards nothing is left
// that a packet would cost. The node's own connections straight to a pod are
// probes and count for nothing; through a Service they count.
package answer
