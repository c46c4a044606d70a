// Package nodeports is the plug-in NodePorts: no two pods on a node take the same
// host port on the same address.
package nodeports
