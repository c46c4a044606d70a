// Package journey is the ship's log: every component records the steps that an
// object takes between the request that made it and the first answered request.
//
//	component ── Recorder.Record(Span) ── Log (in the API server's process)
//	                                        ▲ POST Batch, from other processes (Remote)
//	peri trace ── GET ──────────────────────┘
//	           └─ Align: clocks put right by what causes what ─► text, JSON, otlp/
//
// A trace is identified by the UID of the object that the user made (both have
// 128 bits). Children carry it in the annotation periplus.io/traceparent (W3C
// Trace Context), which controllers set with Inherit. A request with a
// traceparent header of its own keeps that trace.
//
// Other machines have other clocks. A Remote says with each batch when it sent it
// and how long the last one took; the Log shifts the spans by what is beyond that
// doubt (Span.Skew says by how much). What is left is put right by Align.
//
// What a request does at each of its hops has the attribute AttrRequest, so that the
// hops can be found again whosever journey they are in.
package journey
