// Package oidc knows the tokens of OpenID Connect issuers: those of a structured
// authentication configuration (several issuers, CEL rules for claims and users), or the
// one of the older flags. The configuration's file is read again when it changes; one that
// is not valid changes nothing.
//
//	file ── decode, validate, compile ──► one authenticator per issuer ──► Tokens
//	                                └───► who may be anonymous
package oidc
