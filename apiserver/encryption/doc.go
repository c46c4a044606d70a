// Package encryption keeps objects encrypted in the store (KEP-1927, KEP-3299): it is a
// store.Store in front of another one.
//
//	rest, cacher ── plain bytes ──► Store ── k8s:enc:aesgcm:v1:key1:… ──► etcd
//	                                  │
//	             EncryptionConfiguration: resources → providers, the first one writes
//
// The configuration, its providers (identity, aesgcm, aescbc, secretbox, kms v2) and the
// form of values are upstream's, so that the data of an existing cluster can be opened.
// The key of an entry is authenticated with it: a value that is copied to another name
// cannot be read.
//
// A write that changes nothing is done all the same when what is stored was not written
// by the first provider's first key: that is how keys are rotated.
package encryption
