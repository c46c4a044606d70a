// Package namespacelifecycle is the admission plug-in NamespaceLifecycle:
// nothing is created in a namespace that does not exist or is going away, and
// the namespaces that a cluster needs cannot be deleted.
package namespacelifecycle
