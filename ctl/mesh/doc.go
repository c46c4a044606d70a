// Package mesh is "peri mesh-init", "peri mesh-proxy" and "peri mesh-wait": what the
// mesh adds to a pod, where it has not the small program for it. People do not type them.
package mesh
