// Package source reads ConfigMaps, Secrets, service account tokens, trust bundles and
// certificates for the pods of a node through client-go: it is the volume.Sources of
// the kubelet.
//
// A node may read only the objects that its pods refer to, so each of them is
// watched by name while a pod refers to it (environment, volumes, pull secrets),
// counted by pod. In one process with the API server, where a shared informer
// costs nothing, Config.Informers is used instead. ClusterTrustBundles, which everybody
// may read, and the node's own PodCertificateRequests are watched together, while a
// pod needs one.
package source
