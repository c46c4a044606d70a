// Package projected is the volume kind projected: ConfigMaps, Secrets, fields of the
// pod, service account tokens, trust bundles and certificates of the pod together in
// one directory in memory. Tokens and certificates are bound to the pod and renewed
// before they end.
package projected
