// Package crd serves custom resources: it makes a registry.Resource of every
// CustomResourceDefinition whose names are accepted, at run time.
//
//	CustomResourceDefinition ── names, conditions ──► status
//	         │
//	         └── versions ── Resource{Object, strategy, columns, scale} ──► rest.Server (all verbs)
//	                             │                                     └──► discovery, OpenAPI
//	                             └── schema: prune, default, validate, CEL rules
//
// Objects are of type Object: typed metadata and everything else as JSON values.
// Schemas are compiled when the first object is read or written, rules (CEL) when
// the first object is validated, so that a definition that nobody uses costs no
// more than its own object.
//
// Deleting a definition deletes its objects first (finalizer
// customresourcecleanup.apiextensions.k8s.io).
package crd
