// Package pki is a cluster's certificate authority and the certificates that it
// issues: ECDSA P-256, kept as PEM files, leaves renewed in place long before
// they expire.
package pki
