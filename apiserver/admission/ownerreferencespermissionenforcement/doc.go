// Package ownerreferencespermissionenforcement is the admission plug-in
// OwnerReferencesPermissionEnforcement: owners of an object are changed by those who
// may delete it, and only who may set the finalizers of an owner lets an object hold
// up its deletion. It is off by default.
package ownerreferencespermissionenforcement
