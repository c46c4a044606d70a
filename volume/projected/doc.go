// Package projected is the volume kind projected: ConfigMaps, Secrets, fields of
// the pod and service account tokens together in one directory in memory. Tokens
// are bound to the pod and renewed before they end.
package projected
