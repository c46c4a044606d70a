package vxlan_test

import (
	"net/netip"
	"testing"

	"github.com/periplus/periplus/cni"
	"github.com/periplus/periplus/cni/vxlan"
	"github.com/periplus/periplus/linux/link"
	"github.com/periplus/periplus/linux/netnstest"
)

func peer(name, address, pods string) cni.Peer {
	return cni.Peer{Name: name, Address: netip.MustParseAddr(address), Ranges: []netip.Prefix{netip.MustParsePrefix(pods)}}
}

// TestSync follows peers that come, move and go; nothing is made before the first.
func TestSync(t *testing.T) {
	t.Parallel()
	netnstest.Run(t, func() {
		c, err := link.Open()
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		bridge, err := c.EnsureBridge("up0", nil, 1500)
		if err != nil {
			t.Fatal(err)
		}
		if err := c.AddAddress(bridge.Index, netip.MustParsePrefix("192.0.2.1/24")); err != nil {
			t.Fatal(err)
		}
		b, err := vxlan.New(vxlan.Config{})
		if err != nil {
			t.Fatal(err)
		}
		defer b.Close()
		self := peer("a", "192.0.2.1", "10.42.0.0/24")
		if err := b.Sync(self, nil); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Get("peri.vx"); err == nil {
			t.Error("a node alone has a tunnel")
		}
		check := func(when string, peers ...cni.Peer) {
			t.Helper()
			if err := b.Sync(self, peers); err != nil {
				t.Fatal(err)
			}
			dev, err := c.Get("peri.vx")
			if err != nil || dev.MTU != 1450 || !dev.Up {
				t.Fatalf("%s: device %+v, %v", when, dev, err)
			}
			ends, err := c.Neighbors(dev.Index, false)
			if err != nil || len(ends) != len(peers) {
				t.Errorf("%s: neighbours %v, %v", when, ends, err)
			}
			tunnels, err := c.Neighbors(dev.Index, true)
			if err != nil || len(tunnels) != len(peers) {
				t.Errorf("%s: forwarding %v, %v", when, tunnels, err)
			}
			routes, err := c.MarkedRoutes(0x50)
			if err != nil || len(routes) != len(peers) {
				t.Fatalf("%s: routes %v, %v", when, routes, err)
			}
			for _, p := range peers {
				found := false
				for _, r := range routes {
					found = found || r.Dst == p.Ranges[0] && r.Via == p.Ranges[0].Addr() && r.Src == netip.MustParseAddr("10.42.0.1") && r.OnLink
				}
				if !found {
					t.Errorf("%s: no route to %v in %+v", when, p, routes)
				}
			}
		}
		check("two", peer("b", "192.0.2.2", "10.42.1.0/24"), peer("c", "192.0.2.3", "10.42.2.0/24"))
		check("again", peer("b", "192.0.2.2", "10.42.1.0/24"), peer("c", "192.0.2.3", "10.42.2.0/24"))
		check("c has another address", peer("b", "192.0.2.2", "10.42.1.0/24"), peer("c", "192.0.2.4", "10.42.2.0/24"))
		check("b is gone", peer("c", "192.0.2.4", "10.42.2.0/24"))
		if err := b.Sync(self, nil); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Get("peri.vx"); err == nil {
			t.Error("the tunnel is still there")
		}
	})
}
