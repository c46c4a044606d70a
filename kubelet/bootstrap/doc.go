// Package bootstrap makes a machine a node of a cluster, and keeps it one.
//
//	token ── Discover ──► authority, known by its hash or by the token's signature
//	            │
//	token ── Join ──────► client certificate system:node:<name>   (CertificateSigningRequest)
//	            │
//	client certificate ─► serving certificate of the kubelet     (CertificateSigningRequest)
//
// Nothing is sent to a server before it is known to be the right one, and nothing
// is written before the join has succeeded. Certificates are renewed in place
// after two thirds of their life (Identity.Run), with a new key each time.
//
//	discover.go   whom to trust
//	request.go    one certificate by CertificateSigningRequest
//	join.go       the first certificate
//	identity.go   certificates on disk, renewal
package bootstrap
