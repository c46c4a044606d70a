// Package daemonset keeps one pod of each DaemonSet on every node that its
// template fits. The scheduler places the pods: each carries a node affinity for
// its node's name, and tolerations for what nodes have while they are unwell.
//
// An update replaces pods node by node: first the old pod goes (maxUnavailable),
// or first the new one comes (maxSurge). Earlier templates stay as
// ControllerRevisions, for kubectl rollout undo.
package daemonset
