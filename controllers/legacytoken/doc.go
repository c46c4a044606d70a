// Package legacytoken fills Secrets of type kubernetes.io/service-account-token: the
// token, the cluster's authority and the namespace. A Secret whose service account has
// gone goes, too.
package legacytoken
