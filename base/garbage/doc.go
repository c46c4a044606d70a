// Package garbage decides how much garbage the collector lets stand. A process that
// allocates little keeps its heap small; one that is busy and has a small heap would
// collect many times a second, and each time look at all that lives, so it is lent
// some memory while it is busy.
package garbage
