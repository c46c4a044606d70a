// Package trustbundlepublisher publishes the certificates with which the API server's
// own is verified, as a ClusterTrustBundle of the signer
// kubernetes.io/kube-apiserver-serving. Bundles of that signer with another content are
// old ones, and are deleted.
package trustbundlepublisher
