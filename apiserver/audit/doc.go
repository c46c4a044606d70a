// Package audit keeps the log of who asked the API for what.
//
//	authenticate ── Begin ── … the other stations … ── End
//	                  │ policy: which level, which stages
//	                  ▼
//	               Record ── Event ──► Sink: a file, a program over HTTPS, each at once or in batches
//
// A request is looked up in the policy once, after its sender is known. What the
// policy does not want costs nothing more; without a policy there is no Auditor at
// all. Stations add to the record through request.State.Audit. A further backend is
// one type that is a Sink, made in New.
package audit
