// Package basicauth asks for a name and a password (RFC 7617) and compares them with
// the lines of an htpasswd file: bcrypt, SHA-1 and plain passwords.
package basicauth
