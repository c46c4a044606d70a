package gateway

import (
	"context"

	corev1 "k8s.io/api/core/v1"
)

// A Source makes configuration from one kind of API.
type Source interface {
	// Run follows the source's objects until ctx ends. synced is called once, when
	// those that exist are known; changed whenever one of them changes.
	Run(ctx context.Context, synced, changed func()) error
	// Active reports whether there is anything to build for.
	Active() bool
	// Build adds what the objects want. It is called by one goroutine at a time.
	Build(b *Build)
	// Report brings statuses in line with the last Build.
	Report(ctx context.Context, r *Result) error
}

// A Result is what became of a Build.
type Result struct {
	// Addresses are where clients reach the gateway: those of the nodes.
	Addresses []Address
	// Ports that could not be opened on this node, and why.
	Ports map[int]error
	// Build is what was built.
	Build *Build
}

// An Address is one of a node.
type Address struct {
	Type  corev1.NodeAddressType // InternalIP, ExternalIP, Hostname
	Value string
}

// IPs returns the addresses to publish: external ones if a node has some, else internal ones.
func (r *Result) IPs() []string {
	var internal, external []string
	for _, a := range r.Addresses {
		switch a.Type {
		case corev1.NodeExternalIP:
			external = append(external, a.Value)
		case corev1.NodeInternalIP:
			internal = append(internal, a.Value)
		}
	}
	if len(external) > 0 {
		return external
	}
	return internal
}
