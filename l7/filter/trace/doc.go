// Package trace gives each request its identity: X-Request-ID, and the trace context
// in the headers of W3C (traceparent, Trace Context 1) and Zipkin (B3). What the
// client has sent is continued; what is missing is made.
//
// A span is handed to Export for each sampled request when it has ended.
package trace
