// Package dropin follows a directory into which people drop files, with inotify.
//
// In: a directory. Out: calls of a function with its files, once at the start and
// whenever a file has been closed after writing, moved in, linked or removed. A file
// that is still being written is not shown to be complete: its end is waited for.
//
// A directory costs one goroutine that sleeps in the kernel.
package dropin
