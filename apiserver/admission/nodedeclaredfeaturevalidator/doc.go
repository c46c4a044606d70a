// Package nodedeclaredfeaturevalidator is the admission plug-in
// NodeDeclaredFeatureValidator (KEP-5328): a pod is not changed in a way that its
// node does not say it knows.
package nodedeclaredfeaturevalidator
