package cni

import (
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/periplus/periplus/base"
)

// AddressAnnotation on a node says at which of its addresses other nodes reach its
// pods, when that is not its first InternalIP.
const AddressAnnotation = "periplus.io/network-address"

// A Peer is a node as the pod network sees it.
type Peer struct {
	Name    string
	Address netip.Addr     // where packets for its pods go
	Ranges  []netip.Prefix // its pods; of Address's family first
}

// A Backbone carries packets between the pods of different nodes. Its methods are
// called from one goroutine.
type Backbone interface {
	// Name is the mode's name, "vxlan".
	Name() string
	// Overhead is what it adds to each packet, in bytes.
	Overhead() int
	// Sync makes the kernel of node self reach exactly these peers. What is right
	// already is not touched. An error about one peer does not keep it from others.
	Sync(self Peer, peers []Peer) error
	// Cleanup removes all that the backbone made.
	Cleanup() error
	// Close gives up the connection to the kernel; routes stay.
	Close() error
}

// PeerOf returns how the pod network sees a node; false while it has no address
// or no pod range, and for one that exists only in the API.
func PeerOf(n *corev1.Node) (Peer, bool) {
	p := Peer{Name: n.Name}
	if a, err := netip.ParseAddr(n.Annotations[AddressAnnotation]); err == nil {
		p.Address = a
	}
	for _, a := range n.Status.Addresses {
		if ip, err := netip.ParseAddr(a.Address); err == nil && a.Type == corev1.NodeInternalIP && !p.Address.IsValid() {
			p.Address = ip
		}
	}
	cidrs := n.Spec.PodCIDRs
	if len(cidrs) == 0 && n.Spec.PodCIDR != "" {
		cidrs = []string{n.Spec.PodCIDR}
	}
	for _, c := range cidrs {
		if r, err := netip.ParsePrefix(c); err == nil {
			p.Ranges = append(p.Ranges, r.Masked())
		}
	}
	_, hollow := n.Labels[base.HollowLabel]
	return p, p.Address.IsValid() && len(p.Ranges) > 0 && !hollow
}

// PeersOf splits nodes into this one and the others, sorted by name. self is
// false while this node has no address or range yet.
func PeersOf(nodes []*corev1.Node, self string) (own Peer, others []Peer, ok bool) {
	for _, n := range nodes {
		p, complete := PeerOf(n)
		switch {
		case !complete:
		case n.Name == self:
			own, ok = p, true
		default:
			others = append(others, p)
		}
	}
	slices.SortFunc(others, func(a, b Peer) int { return strings.Compare(a.Name, b.Name) })
	return own, others, ok
}

// Equal says whether both mean the same.
func (p Peer) Equal(o Peer) bool {
	return p.Name == o.Name && p.Address == o.Address && slices.Equal(p.Ranges, o.Ranges)
}
