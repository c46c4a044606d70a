// Package nodeunschedulable is the plug-in NodeUnschedulable: nothing goes to a
// cordoned node, unless it tolerates the taint node.kubernetes.io/unschedulable.
package nodeunschedulable
