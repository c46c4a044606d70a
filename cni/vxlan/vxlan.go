package vxlan

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"

	"github.com/periplus/periplus/cni"
	"github.com/periplus/periplus/linux/link"
)

// What Config's zero values mean.
const (
	DefaultPort   = 8472 // Linux's and flannel's: firewalls know it
	DefaultID     = 1
	defaultDevice = "peri.vx"
)

const (
	// overhead of outer IPv4, UDP, VXLAN and inner Ethernet headers.
	overhead = 50
	// overhead6 is the same over IPv6.
	overhead6 = 70
	// protocol marks our routes.
	protocol = 0x50
)

// Config says how tunnels look.
type Config struct {
	Device string // default "peri.vx"
	ID     int    // network identifier, the same on all nodes; default 1
	Port   int    // UDP, the same on all nodes; default 8472
	// MTU of packets inside; default: that of the interface with the node's
	// address, less what the tunnel adds.
	MTU int
	// IPv6 says that the nodes' addresses are of that family.
	IPv6 bool
}

// A Backbone is the tunnels of the network namespace of the thread that made it.
type Backbone struct {
	cfg  Config
	link *link.Conn
}

var _ cni.Backbone = (*Backbone)(nil)

// New returns the backbone; it touches nothing yet.
func New(cfg Config) (*Backbone, error) {
	if cfg.Device == "" {
		cfg.Device = defaultDevice
	}
	if cfg.ID == 0 {
		cfg.ID = DefaultID
	}
	if cfg.Port == 0 {
		cfg.Port = DefaultPort
	}
	if cfg.Port < 1 || cfg.Port > 65535 {
		return nil, fmt.Errorf("vxlan: Port: %d is out of range, must be 1 to 65535", cfg.Port)
	}
	c, err := link.Open()
	if err != nil {
		return nil, err
	}
	return &Backbone{cfg: cfg, link: c}, nil
}

// Name implements cni.Backbone.
func (b *Backbone) Name() string { return "vxlan" }

// Overhead implements cni.Backbone.
func (b *Backbone) Overhead() int {
	if b.cfg.IPv6 {
		return overhead6
	}
	return overhead
}

// Close implements cni.Backbone.
func (b *Backbone) Close() error { return b.link.Close() }

// Cleanup removes the device, and with it routes and entries.
func (b *Backbone) Cleanup() error { return b.link.Remove(b.cfg.Device) }

// HardwareAddr is that of the tunnel end at an address.
func HardwareAddr(a netip.Addr) net.HardwareAddr {
	s := a.AsSlice()
	return append(net.HardwareAddr{0x0a, 0x59}, s[len(s)-4:]...)
}

// gateway is the address of a peer's tunnel end inside: the first of its range,
// which no pod gets.
func gateway(r netip.Prefix) netip.Addr { return r.Addr() }

// Sync implements cni.Backbone.
func (b *Backbone) Sync(self cni.Peer, peers []cni.Peer) error {
	if len(peers) == 0 {
		return b.Cleanup()
	}
	mtu := b.cfg.MTU
	if mtu == 0 {
		uplink, _, err := b.link.Holding(self.Address)
		if err != nil {
			return fmt.Errorf("vxlan: %w", err)
		}
		mtu = uplink.MTU - b.Overhead()
	}
	dev, err := b.link.EnsureVXLAN(link.VXLAN{
		Name: b.cfg.Device, ID: b.cfg.ID, Port: b.cfg.Port, Local: self.Address, MAC: HardwareAddr(self.Address), MTU: mtu,
	})
	if err != nil {
		return fmt.Errorf("vxlan: %w", err)
	}
	w := wantedOf(self, peers, dev.Index)
	var errs []error
	// What this node sends through the tunnel when it masquerades: its own address
	// in the pod range, to which the answer finds its way back.
	for _, r := range self.Ranges {
		own := r.Addr().Next()
		errs = append(errs, b.link.AddAddress(dev.Index, netip.PrefixFrom(own, own.BitLen())))
	}
	errs = append(errs, b.neighbors(dev.Index, w.ends, false), b.neighbors(dev.Index, w.tunnels, true), b.routes(dev.Index, w.routes))
	return errors.Join(errs...)
}

// wanted is what the kernel is to hold.
type wanted struct {
	ends    []link.Neighbor // tunnel ends inside → hardware address
	tunnels []link.Neighbor // hardware address → node
	routes  []link.Route
}

func wantedOf(self cni.Peer, peers []cni.Peer, index int) wanted {
	var w wanted
	for _, p := range peers {
		if p.Address.Is6() != self.Address.Is6() {
			continue
		}
		mac := HardwareAddr(p.Address)
		w.tunnels = append(w.tunnels, link.Neighbor{IP: p.Address, MAC: mac})
		for _, r := range p.Ranges {
			route := link.Route{Dst: r, Via: gateway(r), Index: index, OnLink: true, Protocol: protocol}
			for _, own := range self.Ranges {
				if own.Addr().Is6() == r.Addr().Is6() {
					route.Src = own.Addr().Next()
				}
			}
			if !route.Src.IsValid() {
				continue // this node has no address of that family
			}
			w.ends = append(w.ends, link.Neighbor{IP: gateway(r), MAC: mac})
			w.routes = append(w.routes, route)
		}
	}
	return w
}

// neighbors makes the entries of one table exactly those.
func (b *Backbone) neighbors(index int, want []link.Neighbor, forwarding bool) error {
	have, err := b.link.Neighbors(index, forwarding)
	if err != nil {
		return err
	}
	same := func(x link.Neighbor) func(link.Neighbor) bool {
		return func(y link.Neighbor) bool { return x.IP == y.IP && x.MAC.String() == y.MAC.String() }
	}
	var errs []error
	for _, h := range have {
		if !slices.ContainsFunc(want, same(h)) {
			errs = append(errs, b.link.RemoveNeighbor(index, h, forwarding))
		}
	}
	for _, w := range want {
		if !slices.ContainsFunc(have, same(w)) {
			errs = append(errs, b.link.SetNeighbor(index, w, forwarding))
		}
	}
	return errors.Join(errs...)
}

func (b *Backbone) routes(index int, want []link.Route) error {
	have, err := b.link.MarkedRoutes(protocol)
	if err != nil {
		return err
	}
	var errs []error
	for _, h := range have {
		if h.Index == index && !slices.ContainsFunc(want, func(w link.Route) bool { return w.Dst == h.Dst }) {
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
