// Package node is the authorization mode Node: a kubelet may do what kubelets
// do, and read only those secrets, config maps, claims and volumes that pods
// bound to its own node use.
package node
