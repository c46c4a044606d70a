// Package servicecidr looks after ranges of cluster IPs: a finalizer keeps a ServiceCIDR
// that is being deleted as long as a Service has an address that no other range
// holds, and the Ready condition says so.
package servicecidr
