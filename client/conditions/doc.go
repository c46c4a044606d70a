// Package conditions reads the conditions of pods and nodes, as every room has to.
// Conditions of kinds that have metav1.Condition are read with
// k8s.io/apimachinery/pkg/api/meta.
package conditions
