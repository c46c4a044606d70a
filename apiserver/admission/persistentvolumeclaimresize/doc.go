// Package persistentvolumeclaimresize is the admission plug-in
// PersistentVolumeClaimResize: a claim grows only if it is bound and its class
// allows that.
package persistentvolumeclaimresize
