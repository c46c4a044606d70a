// Package kubectl is "peri kubectl": the real kubectl, from k8s.io/kubectl. The
// cluster of this machine is the default when nothing else names one.
package kubectl
