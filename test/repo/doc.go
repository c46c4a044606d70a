// Package repo tests the repository itself: which room may import which
// (imports_test.go), one package comment a directory (comments_test.go), the size
// of files (files_test.go) and what no code may call (calls_test.go).
//
// A new room is one line in the table of rooms.
package repo
