// Package authn finds out who sends a request. It holds the contract and the chain;
// each way of authentication is a folder:
//
//	requestheader   a proxy with a certificate of the front proxies' authority names the user
//	certificate     client certificates
//	static          tokens from a file
//	serviceaccount  tokens of service accounts, bound and legacy; it also issues them
//	bootstrap       the tokens with which machines join
//	oidc            tokens of OpenID Connect issuers (structured configuration)
//	webhook         tokens that another program judges
//	anonymous       whoever presents nothing
//
// all puts them in order. All are asked until one knows the sender. When none does and
// one of them has found something wrong the answer is 401. Guard slows down who guesses.
//
// To add one, implement authenticator.Request, or authenticator.Token for bearer tokens,
// in a folder and name it in all.
package authn
