// Package rbac answers from Roles and bindings. Rules are compiled into an
// index by subject, which is rebuilt when one of the four kinds changes.
package rbac
