// Package registry reads manifests and blobs from registries that speak the OCI
// distribution specification, with mirrors.
//
//	Client.Repository(host, path) ──► mirror 1 ──✗──► mirror 2 ──✗──► the registry itself
//
// Authentication is go-containerregistry's. Credentials given for an image go to
// its own registry only; mirrors have their own in the configuration. Plain HTTP
// is spoken to loopback addresses and to configured registries, to nobody else.
package registry
