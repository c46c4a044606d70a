// Package ca is the mesh's certificate authority. It signs certificates of 24 hours
// for service accounts and speaks Istio's protocol, so that any proxy can ask.
//
//	Secret istio-system/istio-ca-secret ── Open ──► Authority ── root certificate ──► ConfigMaps (inject)
//	                                                   ▲
//	sidecar ── CreateCertificate(CSR), token ──► Service ── TokenReview ──► who calls
//
// The identity in a certificate comes from the caller's token, never from the CSR,
// of which only the public key is used. Several API servers share the Secret: who
// comes second takes what the first has made.
package ca
