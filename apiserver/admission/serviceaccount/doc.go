// Package serviceaccount is the admission plug-in ServiceAccount: a pod gets
// the service account "default" unless it names one, and a projected volume
// with the account's token, the cluster's CA and the pod's namespace.
package serviceaccount
