// Package csrapproving approves what nodes ask for: client certificates, for
// whoever holds the permission "nodeclient" or "selfnodeclient" (as upstream),
// and serving certificates for a node's own addresses, which upstream leaves to
// people. Everything else waits for a person.
package csrapproving
