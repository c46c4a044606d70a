// Package netcfg derives what a container sees of the network in files: its
// resolver configuration, its /etc/hosts and its host name. Pure functions over
// the pod, apart from reading the host's own files.
package netcfg
