// Package sidecar is the proxy in each pod of the mesh: it receives xDS, makes l7
// snapshots of it and lets the l7 engine carry them out.
//
//	control plane ── ADS (incremental) ──► discovery.go ──► state ──► translate/ ──► l7.Snapshot ──► engine
//	             └── CreateCertificate ──► certificates.go: a new key and certificate at half of its life
//	kubelet ─────── 15021 /healthz/ready, 15020 /app-health/… ──► status.go
//	Prometheus ──── 15020, 15090 /stats/prometheus ─────────────► mesh/telemetry
//
// Without the control plane it goes on with what it has: the last configuration, and
// its certificate until that expires.
//
// Nothing here knows Kubernetes' types: there is one of it for each pod.
package sidecar
