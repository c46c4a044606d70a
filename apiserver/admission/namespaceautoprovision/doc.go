// Package namespaceautoprovision is the admission plug-in NamespaceAutoProvision: a
// namespace in which something is created is made if it does not exist. It is off by
// default.
package namespaceautoprovision
