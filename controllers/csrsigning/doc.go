// Package csrsigning issues the certificates of approved requests, with the
// cluster's authority, for upstream's four built-in signers. Each signer has
// rules about the subject and the usages; a request that breaks them fails with
// the reason in its status.
package csrsigning
