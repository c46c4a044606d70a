// Package eviction decides when a node is short of something and which pod has to
// go for it: upstream's rules, without goroutines, clocks or system calls.
//
//	flags ── Parse ──► []Threshold ┐
//	what is left ─► Observations ──┼─ State.Next ─► conditions of the node, thresholds to act on
//	now ───────────────────────────┘                        │ First
//	pods and their figures ── Rank ─► the order in which they go ── Message, OverLimit
//
//	threshold.go  signals, thresholds and how they are written
//	state.go      grace periods, minimum reclaim, transition period
//	rank.go       who goes first
//	message.go    what is said about it
//	limits.go     pods that fill more disk than they may
package eviction
