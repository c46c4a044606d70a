// Package namespaceexists is the admission plug-in NamespaceExists: nothing is
// written in a namespace that does not exist. NamespaceLifecycle does the same for
// what is created, and is on; this one is off by default.
package namespaceexists
