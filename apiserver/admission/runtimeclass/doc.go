// Package runtimeclass is the admission plug-in RuntimeClass: a pod gets the overhead, the
// node selector and the tolerations of its class, and may not say otherwise.
package runtimeclass
