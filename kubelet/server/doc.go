// Package server is the kubelet's HTTPS API, as the API server, kubectl (through
// the API server) and metrics collectors use it.
//
//	TLS ─▶ authenticate (client certificate, bearer token) ─▶ authorize (nodes/<sub>) ─┬─ /pods, /runningpods, /configz
//	                                                                                   ├─ /containerLogs   the CRI log file
//	                                                                                   ├─ /exec, /attach, /portForward, /run
//	                                                                                   └─ /stats/summary, /metrics/resource, /healthz
//
// exec, attach and port-forward are handed to the address that the runtime's
// streaming server gave, byte by byte after the upgrade, so that SPDY and
// WebSocket both work. A new path is one line in routes.go.
package server
