// Command demo is "make demo": the grand tour (test/demo/tour) on this terminal.
//
//	-peri FILE   the binary to show
package main
