// Package ctl is the command line: Main finds the verb and runs it. Each verb
// is a child folder with one constructor and one line in verbs.
package ctl
