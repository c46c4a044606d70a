// Package bootstrap knows the tokens with which machines join: Secrets of type
// bootstrap.kubernetes.io/token in kube-system (KEP-130).
package bootstrap
