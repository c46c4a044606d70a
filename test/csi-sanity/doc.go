// Package sanity runs csi-sanity, the storage community's suite for drivers,
// against the built-in driver: make csi-sanity. It is a Go module of its own, so
// that the suite's dependencies are not ours.
package sanity
