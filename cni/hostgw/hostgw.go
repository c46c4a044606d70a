package hostgw

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"github.com/periplus/periplus/cni"
	"github.com/periplus/periplus/linux/link"
)

// protocol marks our routes.
const protocol = 0x51

// A Backbone is the routes of the network namespace of the thread that made it.
type Backbone struct{ link *link.Conn }

var _ cni.Backbone = (*Backbone)(nil)

// New returns the backbone; it touches nothing yet.
func New() (*Backbone, error) {
	c, err := link.Open()
	if err != nil {
		return nil, err
	}
	return &Backbone{link: c}, nil
}

// Name implements cni.Backbone.
func (b *Backbone) Name() string { return "direct" }

// Overhead implements cni.Backbone.
func (b *Backbone) Overhead() int { return 0 }

// Close implements cni.Backbone.
func (b *Backbone) Close() error { return b.link.Close() }

// Cleanup implements cni.Backbone.
func (b *Backbone) Cleanup() error { return b.replace(nil) }

// Sync implements cni.Backbone.
func (b *Backbone) Sync(self cni.Peer, peers []cni.Peer) error {
	uplink, network, err := b.link.Holding(self.Address)
	if err != nil {
		return fmt.Errorf("direct: %w", err)
	}
	want, err := wanted(network, uplink.Index, peers)
	return errors.Join(err, b.replace(want))
}

// wanted returns the routes to peers in the same network, and an error about
// those in others.
func wanted(network netip.Prefix, index int, peers []cni.Peer) ([]link.Route, error) {
	var routes []link.Route
	var errs []error
	for _, p := range peers {
		if !network.Masked().Contains(p.Address) {
			errs = append(errs, fmt.Errorf("node %s at %s is not in the network %s of this node, which --pod-network direct needs: use vxlan", p.Name, p.Address, network.Masked()))
			continue
		}
		for _, r := range p.Ranges {
			if r.Addr().Is6() == p.Address.Is6() {
				routes = append(routes, link.Route{Dst: r, Via: p.Address, Index: index, Protocol: protocol})
			}
		}
	}
	return routes, errors.Join(errs...)
}

// replace makes our routes exactly those.
func (b *Backbone) replace(want []link.Route) error {
	have, err := b.link.MarkedRoutes(protocol)
	if err != nil {
		return err
	}
	var errs []error
	for _, h := range have {
		if !slices.ContainsFunc(want, func(w link.Route) bool { return w.Dst == h.Dst }) {
			errs = append(errs, b.link.RemoveRoute(h))
		}
	}
	for _, w := range want {
		if !slices.ContainsFunc(have, func(h link.Route) bool { return h == w }) {
			errs = append(errs, b.link.SetRoute(w))
		}
	}
	return errors.Join(errs...)
}
