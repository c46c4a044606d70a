// Package serviceaccount issues and checks the tokens of service accounts.
//
//	keys.go     the keys that sign and those that verify, and the documents about them (JWKS)
//	issue.go    bound tokens (KEP-1205)
//	check.go    what a token says, and whether what it is bound to still exists
//	legacy.go   tokens in Secrets of type kubernetes.io/service-account-token
//
// A signature is verified once a token and then remembered; that the account, pod, node
// or Secret is still there is looked up in the watch cache at each request.
package serviceaccount
