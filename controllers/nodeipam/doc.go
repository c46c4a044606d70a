// Package nodeipam gives each node a range of pod addresses out of the cluster's:
// with 10.42.0.0/16 and a mask of 24 bits, 256 nodes of 254 pods. The Node objects
// are the only record; what is occupied is read from them at the start.
package nodeipam
