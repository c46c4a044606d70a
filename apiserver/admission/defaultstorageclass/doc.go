// Package defaultstorageclass is the admission plug-in DefaultStorageClass: a claim
// that names no class gets the default one.
package defaultstorageclass
