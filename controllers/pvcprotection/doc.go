// Package pvcprotection keeps a claim that is being deleted until no pod uses it.
package pvcprotection
