// Package secret is the volume kind secret: the keys of a Secret as files in
// memory that follow the object.
package secret
