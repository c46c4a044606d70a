// Package defaultingressclass is the admission plug-in DefaultIngressClass: an
// Ingress that names no class gets the default one.
package defaultingressclass
