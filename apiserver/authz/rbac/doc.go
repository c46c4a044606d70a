// Package rbac answers from Roles and bindings. Rules are compiled into an
// index by subject, one for the cluster and one a namespace, which is built again
// after one of the four kinds has changed. The default policy is in policy*.go.
package rbac
