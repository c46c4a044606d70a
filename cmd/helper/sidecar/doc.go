// Command sidecar is the proxy in a pod of the mesh, and its init step, as a program
// of its own: it has only what these need. See mesh/sidecar and mesh/capture.
//
//	sidecar proxy [flags]    sidecar init [flags]    sidecar wait
package main
