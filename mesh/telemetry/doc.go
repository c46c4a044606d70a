// Package telemetry is what a sidecar says about the traffic that it sees: Istio's
// standard metrics, under their names and with their labels, in Prometheus' text
// format, an access log, and the exchange of who is on the other side.
//
//	l7.Observer ── Observer ─┬─► Metrics ── Write ──► /stats/prometheus
//	                         └─► access log
//	l7.Filter ──── PeerFilter: x-envoy-peer-metadata tells the server who the client is
//
// A series is found by a small comparable key, so that a request costs one lookup
// and a few additions.
package telemetry
