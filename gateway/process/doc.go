// Package process lets the gateway of a node run as a process of its own, which goes
// on while peri is stopped, crashes, or is replaced by another version.
//
//	peri:    Keeper ── starts ──────────────► peri gateway: Child, gateway.Server
//	           ▲  │                              ▲
//	           │  └── connection to its socket ──┤  which ports it could not open;
//	           │      (its end is its end)       │  "drain": it is not needed any more
//	  sources: is there an Ingress?              │
//	                       its successor ────────┘  "sockets": takes the listening sockets
//
// A process is kept for as long as there is something to serve; without an Ingress or a
// Gateway there is none. A peri that starts finds it by its socket and leaves it alone
// if it is of the same version and configuration. Otherwise it starts a successor, which
// takes the listening sockets over (SCM_RIGHTS), configures itself, and only then tells
// the old one to drain: clients that are waiting to be accepted wait in the same queue,
// and none is refused.
package process
