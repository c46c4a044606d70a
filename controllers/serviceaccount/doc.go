// Package serviceaccount keeps the "default" ServiceAccount in every namespace.
// Pods wait for it, so it is made the moment a namespace appears.
package serviceaccount
