// Package rootca publishes the cluster's root certificate as the ConfigMap
// kube-root-ca.crt in every namespace, from where every pod's token volume takes
// it.
package rootca
