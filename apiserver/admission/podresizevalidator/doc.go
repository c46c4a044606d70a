// Package podresizevalidator is the admission plug-in PodResizeValidator: a pod is
// not resized beyond what its node has.
package podresizevalidator
