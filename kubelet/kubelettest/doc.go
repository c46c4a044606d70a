// Package kubelettest has a container runtime in memory for tests of the kubelet:
// sandboxes and containers are records, their events are sent as a real runtime
// sends them, and a test decides when a container exits and which images exist.
package kubelettest
