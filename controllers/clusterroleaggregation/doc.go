// Package clusterroleaggregation fills ClusterRoles that have an aggregation rule
// with the rules of all ClusterRoles that it selects.
package clusterroleaggregation
