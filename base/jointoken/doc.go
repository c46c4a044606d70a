// Package jointoken reads and writes the tokens with which a machine joins a
// cluster: a bootstrap token (KEP-130), with or without the hash of the cluster's
// certificate authority, by which the machine knows the server before it
// tells it anything.
//
//	abcdef.0123456789abcdef                    ID and secret
//	K10<64 hexadecimal digits>::abcdef.0123…   the same with the hash
package jointoken
