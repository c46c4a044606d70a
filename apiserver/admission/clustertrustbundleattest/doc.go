// Package clustertrustbundleattest is the admission plug-in ClusterTrustBundleAttest: who
// says which authorities a signer uses needs the verb attest on it.
package clustertrustbundleattest
