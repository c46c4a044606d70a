// Package local makes volumes of the kind local: directories or devices of a
// certain node that an administrator has described as PersistentVolumes.
package local
