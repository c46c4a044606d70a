// Package configmap is the volume kind configMap: the keys of a ConfigMap as files
// that follow the object.
package configmap
