// Package inotify waits for changes of the entries of one directory (inotify(7))
// without a thread or a poll: the descriptor is read through Go's poller.
//
// In: a directory. Out: a stream of (name, what happened).
package inotify
