// Package spans tells a collector of OpenTelemetry what the server does, in upstream's
// words (KEP-647): a span for each request that is sampled, spans of its steps below it.
//
//	request ── GET /api/v1/namespaces/{:namespace}/configmaps/{:name}
//	              └ Create ── Call validating webhook
//	                      └── Create etcd3
//
// Without a configuration there is no Tracer, and nothing here is reached: a request that
// is not traced says so in its State. Spans leave in batches, over OTLP and gRPC.
package spans
