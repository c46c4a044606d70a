// Command module is a program for tests that is run as a WebAssembly module: without
// arguments it serves HTTP on the socket that it is given, else it says what it sees.
package main
