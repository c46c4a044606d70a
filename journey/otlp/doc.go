// Package otlp sends journeys to collectors of OpenTelemetry: OTLP/HTTP 1.x with JSON
// (opentelemetry-proto, trace.proto and trace_service.proto; JSON as protobuf's
// mapping, with IDs in hex).
//
//	[]journey.Span ── Encode ──► ExportTraceServiceRequest ── Send ──► POST …/v1/traces
//
// A component of a node is a resource (service.name, host.name), a step is a span, and
// the object whose journey it is, is the root span over all of its steps. Hops of one
// request are children of each other.
package otlp
