// Package authn finds out who sends a request: by client certificate or by
// service account token, else anonymous. Another method is one more
// Authenticator in the list that the API server is given.
package authn
