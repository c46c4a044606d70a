// Package static knows the tokens of a file: lines of token, user name, UID and, quoted,
// groups. Tokens are compared without telling by the time taken how much of them is right.
package static
