// Package csi is the seam to storage drivers (Container Storage Interface,
// CSI 1.12): a Driver is the three services of the specification behind one
// value, over a socket or in this process, and Drivers are those that a node has.
//
//	registrar ── socket of a third-party driver ──► Dial ──┐
//	csi/local ── on first use ──────► InProcess ──► Driver ┴─► Drivers
//	                                                              │
//	volume/csi (stage, publish and back) ◄────────────────────────┤
//	csi/sidecar (provision, attach, resize) ◄─────────────────────┘
//
// Children: local is the built-in driver, registrar finds the sockets of others
// and keeps CSINode, sidecar has the duties of the programs that are usually
// deployed beside a driver. A built-in driver is one folder and one line in app.
package csi
