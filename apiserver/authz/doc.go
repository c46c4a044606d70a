// Package authz decides whether a request is allowed. A Mode answers allow, deny or
// no opinion; the first opinion counts, none means no.
//
//	authz/rbac     roles and bindings, and the default ones
//	authz/node     what a node may read: what its pods use
//	authz/abac     a file of policies
//	authz/webhook  another program is asked
//	authz/all      the modes that are configured, in their order, and their reloading
package authz
