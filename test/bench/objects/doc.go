// Package objects holds the objects that benchmarks write, so that what is measured
// inside of the API server and over the network is the same. A further kind is a file.
package objects
