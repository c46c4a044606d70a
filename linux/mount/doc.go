// Package mount makes, finds and removes mounts, and opens paths inside a
// directory that somebody else can write, without ever leaving it.
//
// In: plain paths. Out: plain errors that name the path. It knows nothing about
// pods; volume and the container runtime build on it.
package mount
