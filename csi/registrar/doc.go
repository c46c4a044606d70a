// Package registrar makes a node's drivers known: it finds the registration
// sockets of third-party drivers, as upstream's kubelet does, and keeps the
// CSINode object and the node's topology labels.
//
//	<kubelet>/plugins_registry/x.sock ── GetInfo ─► endpoint ── NodeGetInfo ─► CSINode, labels
//	                                  ◄─ NotifyRegistrationStatus ─┘
//
// Sockets are noticed by inotify. A driver whose socket goes is dropped; one that
// ends without taking its socket along is asked again when it is needed.
package registrar
