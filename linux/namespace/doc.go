// Package namespace makes, pins and enters kernel namespaces.
//
// A namespace lives as long as a process is in it or a file is bound to it.
// Pinning by bind mount is what makes pods possible without a pause process:
//
//	thread: unshare(net, ipc, uts) → configure → mount --bind /proc/…/ns/net <file>
//
// Namespaces belong to threads. Everything here runs on a thread of its own
// that ends with the call, so that no other goroutine ever finds itself on a
// thread that is somewhere else.
package namespace
