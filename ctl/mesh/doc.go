// Package mesh is "peri mesh-init" and "peri mesh-proxy": the two programs that the
// mesh adds to a pod. People do not type them.
package mesh
