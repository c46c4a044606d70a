// Package bootstrapsigner signs the ConfigMap kube-public/cluster-info with every
// bootstrap token (detached JWS, RFC 7515 appendix F): a machine that knows only a
// token can tell from it that the server knows the token too, and trust
// the authority that is in it (KEP-130).
package bootstrapsigner
