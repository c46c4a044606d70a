// Package podsecurity is the admission plug-in PodSecurity: the Pod Security Standards
// (privileged, baseline, restricted) as labels of the namespace demand them.
//
//	pod-security.kubernetes.io/enforce   pods are refused
//	pod-security.kubernetes.io/warn      the client is warned, about workloads' templates too
//	pod-security.kubernetes.io/audit     the audit log is told
//
// The standards are those of k8s.io/pod-security-admission.
package podsecurity
