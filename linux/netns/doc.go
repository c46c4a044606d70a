// Package netns enters network namespaces: by the path of a pinned one, or the
// one that a thread was in when it asked (Current). Do runs a function on an
// operating system thread of its own in a namespace; sockets that the function
// opens stay in that namespace.
package netns
