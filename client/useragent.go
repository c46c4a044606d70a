package client

import "strings"

// UserAgent returns what a component calls itself in its requests, from its name or
// that of its user. It begins with the name of upstream's component that does the same:
// what stands before the first slash is noted as the owner of the fields that it writes.
func UserAgent(name string) string {
	component := "peri"
	switch {
	case name == "controller-manager", name == "system:kube-controller-manager", strings.HasPrefix(name, "system:serviceaccount:kube-system:"):
		component = "kube-controller-manager"
	case name == "scheduler", name == "system:kube-scheduler":
		component = "kube-scheduler"
	case name == "kubelet", name == "agent", strings.HasPrefix(name, "system:node:"):
		component = "kubelet"
	case name == "proxy", name == "system:kube-proxy":
		component = "kube-proxy"
	case name == "system:apiserver":
		component = "kube-apiserver"
	}
	return component + "/periplus (" + name + ")"
}
