// Package hostpath is the volume kind hostPath: a file or directory of the node
// itself, checked to be of the type that the pod asks for.
package hostpath
