// Package downwardapi is the volume kind downwardAPI: fields of the pod itself as files,
// which follow its labels and annotations.
package downwardapi
