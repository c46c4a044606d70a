// Package storageobjectinuseprotection is the admission plug-in
// StorageObjectInUseProtection: claims and volumes get finalizers that keep them
// while they are in use; controllers take those off.
package storageobjectinuseprotection
