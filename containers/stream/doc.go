// Package stream is the runtime's streaming server: exec, attach and
// port-forward over SPDY or WebSocket, on loopback only. A URL carries a token
// that is good for one connection within a minute (k8s.io/cri-streaming).
//
//	kubelet ── URL from Exec/Attach/PortForward ──► Server ──► Streamer (containers.Runtime)
package stream
