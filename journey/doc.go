// Package journey is the ship's log: every component records the steps that an
// object takes between the request that made it and the first answered request.
//
//	component ── Recorder.Record(Span) ── Log (in the API server's process)
//	                                        ▲ POST from other processes
//	peri trace ── GET ──────────────────────┘
//
// A trace is identified by the UID of the object that the user made (both have
// 128 bits). Children carry it in the annotation periplus.io/traceparent (W3C
// Trace Context), which controllers set with Inherit. A request with a
// traceparent header of its own keeps that trace.
package journey
