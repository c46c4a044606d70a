package hostgw_test

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/periplus/periplus/cni"
	"github.com/periplus/periplus/cni/hostgw"
	"github.com/periplus/periplus/linux/link"
	"github.com/periplus/periplus/linux/netnstest"
)

// TestSync makes routes to nodes of the same network, and says which are in another.
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
		b, err := hostgw.New()
		if err != nil {
			t.Fatal(err)
		}
		defer b.Close()
		peer := func(name, address, pods string) cni.Peer {
			return cni.Peer{Name: name, Address: netip.MustParseAddr(address), Ranges: []netip.Prefix{netip.MustParsePrefix(pods)}}
		}
		self, near, far := peer("a", "192.0.2.1", "10.42.0.0/24"), peer("b", "192.0.2.2", "10.42.1.0/24"), peer("c", "198.51.100.2", "10.42.2.0/24")
		err = b.Sync(self, []cni.Peer{near, far})
		if err == nil || !strings.Contains(err.Error(), "node c at 198.51.100.2 is not in the network 192.0.2.0/24") {
			t.Errorf("a node elsewhere: %v", err)
		}
		routes, err := c.MarkedRoutes(0x51)
		if err != nil || len(routes) != 1 || routes[0].Dst != near.Ranges[0] || routes[0].Via != near.Address {
			t.Errorf("routes %+v, %v", routes, err)
		}
		if err := b.Cleanup(); err != nil {
			t.Fatal(err)
		}
		if routes, err := c.MarkedRoutes(0x51); err != nil || len(routes) != 0 {
			t.Errorf("left behind: %+v, %v", routes, err)
		}
	})
}
