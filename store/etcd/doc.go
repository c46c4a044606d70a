// Package etcd keeps entries in etcd: embedded in this process (Start) or an
// external cluster (Dial). It is the only package that imports etcd.
//
// Embedded, calls go straight to the server in memory. A single member listens
// on a socket in its data directory only, so that etcdctl works and nothing is
// open to the network.
package etcd
