// Package certificate knows client certificates: the common name is the user, the
// organizations are the groups. The authorities may be replaced while it runs. What a
// connection's certificate says is found out once.
package certificate
