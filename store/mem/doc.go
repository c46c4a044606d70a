// Package mem is a store in memory: the whole history since the last
// compaction in one slice, the present in a sorted index. It is for tests and
// for API servers that live as long as a test.
package mem
