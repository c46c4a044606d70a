// Command netlab makes a machine, runs a node and a registry with the test
// images in it, and gives a shell there, to try things by hand:
//
//	go run ./test/netlab/cmd/netlab -peri bin/peri
package main
