// Package flow keeps one client from slowing the others down (API priority and
// fairness, KEP-1040).
//
//	request ── FlowSchema (who, what) ── PriorityLevelConfiguration: seats
//	                │                          │ none free
//	                └ flow (user, namespace) ──► a few of its queues ── the one that got least is next
//
// Each level has a share of the server's seats, of which it lends some to others
// while it does not need them; they come back as soon as a borrower's request ends. A
// request takes one seat, a long list several. Whoever finds a free seat takes it
// under one mutex; only who must wait costs more: a queue, chosen by shuffle sharding
// from the hash of his flow, a timer and a goroutine that waits anyway. Nothing runs
// while nothing waits: the objects are looked at again when a request finds that they
// have changed.
package flow
