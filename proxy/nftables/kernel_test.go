package nftables_test

import (
	"context"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/periplus/periplus/linux/netnstest"
	"github.com/periplus/periplus/linux/nft"
	"github.com/periplus/periplus/proxy"
	"github.com/periplus/periplus/proxy/nftables"
)

// dump shows what is in the table, with rule handles: two equal dumps mean that
// nothing was touched.
func dump(t *testing.T, c *nft.Conn) map[string]bool {
	t.Helper()
	out := map[string]bool{}
	rules, err := c.Rules(nft.IPv4, "periplus-proxy")
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range rules {
		out[r.Chain+": "+r.Comment+" #"+string(rune(r.Handle))] = true
	}
	for _, set := range []string{"services", "nodeports", "refused", "refused-nodeports", "endpoints", "endpoints-local", "endpoints-port", "endpoints-local-port", "sticky", "sticky-port", "hairpin"} {
		err := c.Elements(nft.IPv4, "periplus-proxy", set, func(e nft.Element) {
			out[set+": "+string(e.Key)+" → "+string(e.Data)+e.Verdict.Chain] = true
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return out
}

func TestTakeoverTouchesNothing(t *testing.T) {
	t.Parallel()
	netnstest.Run(t, func() {
		ports := cluster(20, 3)
		ports[3].NodePort, ports[3].Affinity = 30080, time.Hour
		first, next := open(t), open(t)
		defer first.Close()
		defer next.Close()
		c, err := nft.Open()
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if err := first.Replace(t.Context(), ports); err != nil {
			t.Fatal(err)
		}
		before := dump(t, c)
		if err := next.Replace(t.Context(), ports); err != nil {
			t.Fatal(err)
		}
		after := dump(t, c)
		for k := range before {
			if !after[k] {
				t.Errorf("gone: %q", k)
			}
		}
		if len(before) != len(after) {
			t.Errorf("%d things before, %d after", len(before), len(after))
		}
	})
}

func TestRemovedTableIsTold(t *testing.T) {
	t.Parallel()
	netnstest.Run(t, func() {
		b := open(t)
		defer b.Close()
		ports := cluster(2, 2)
		if err := b.Replace(t.Context(), ports); err != nil {
			t.Fatal(err)
		}
		c, err := nft.Open()
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		batch := nft.NewBatch(nft.IPv4, "periplus-proxy")
		batch.RemoveTable()
		if err := c.Commit(batch); err != nil {
			t.Fatal(err)
		}
		<-b.Lost()
		if err := b.Replace(t.Context(), ports); err != nil {
			t.Fatal(err)
		}
		if len(dump(t, c)) == 0 {
			t.Error("nothing is back")
		}
	})
}

// TestAnyHistory applies random changes and compares the kernel with the
// last state.
func TestAnyHistory(t *testing.T) {
	t.Parallel()
	netnstest.Run(t, func() {
		const seed = 7
		random := rand.New(rand.NewPCG(seed, seed))
		b := open(t)
		defer b.Close()
		c, err := nft.Open()
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if err := b.Replace(context.Background(), nil); err != nil {
			t.Fatal(err)
		}
		base := cluster(8, 12)
		state := map[proxy.PortName]*proxy.Port{}
		for range 300 {
			var updates []proxy.Update
			for _, i := range random.Perm(len(base))[:1+random.IntN(3)] {
				p := *base[i]
				if random.IntN(5) == 0 {
					updates = append(updates, proxy.Update{Name: p.Name})
					delete(state, p.Name)
					continue
				}
				all := base[i].Cluster
				p.Cluster = nil
				for _, e := range all {
					if random.IntN(2) == 0 {
						p.Cluster = append(p.Cluster, e)
					}
				}
				p.Local = p.Cluster[:len(p.Cluster)/2]
				p.NodePort = []uint16{0, 30001, 30002}[random.IntN(3)] // contested
				p.ExternalLocal = random.IntN(2) == 0
				p.InternalLocal = random.IntN(4) == 0
				p.Affinity = []time.Duration{0, time.Hour}[random.IntN(2)]
				for _, e := range p.Local {
					p.OnNode = append(p.OnNode, e.Addr())
				}
				updates = append(updates, proxy.Update{Name: p.Name, Port: &p})
				state[p.Name] = &p
			}
			if err := b.Apply(context.Background(), updates); err != nil {
				t.Fatal(err)
			}
		}
		// Each cluster IP has exactly the endpoints of the last state.
		got := endpoints(t, c)
		for name, p := range state {
			key := p.ClusterIP
			list := p.Cluster
			if p.InternalLocal {
				list = p.Local
			}
			if !slices.Equal(got[key], list) {
				t.Errorf("%s: kernel has %v, want %v", name, got[key], list)
			}
			delete(got, key)
		}
		if len(got) > 0 {
			t.Errorf("left over: %v", got)
		}
	})
}

// endpoints returns the endpoints by cluster IP, sorted.
func endpoints(t *testing.T, c *nft.Conn) map[netip.Addr][]netip.AddrPort {
	t.Helper()
	out := map[netip.Addr][]netip.AddrPort{}
	for _, set := range []string{"endpoints", "endpoints-local"} {
		err := c.Elements(nft.IPv4, "periplus-proxy", set, func(e nft.Element) {
			key := netip.AddrFrom4([4]byte(e.Key[:4]))
			out[key] = append(out[key], netip.AddrPortFrom(netip.AddrFrom4([4]byte(e.Data[:4])), uint16(e.Data[4])<<8|uint16(e.Data[5])))
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, l := range out {
		slices.SortFunc(l, netip.AddrPort.Compare)
	}
	return out
}

func TestIPv6IsTakenByTheKernel(t *testing.T) {
	t.Parallel()
	netnstest.Run(t, func() {
		b, err := nftables.New(nftables.Config{BackendConfig: proxy.BackendConfig{
			IPv6: true, ServiceCIDRs: []netip.Prefix{netip.MustParsePrefix("fd00:43::/112")},
			PodCIDRs: []netip.Prefix{netip.MustParsePrefix("fd00:42::/56")},
		}})
		if err != nil {
			t.Fatal(err)
		}
		defer b.Close()
		p := *cluster(1, 0)[0]
		p.ClusterIP, p.NodePort, p.Affinity, p.ExternalLocal = netip.MustParseAddr("fd00:43::7"), 30080, time.Minute, true
		p.Cluster = []netip.AddrPort{netip.MustParseAddrPort("[fd00:42::2]:80"), netip.MustParseAddrPort("[fd00:42::3]:80")}
		p.Local = p.Cluster[:1]
		p.OnNode = []netip.Addr{p.Local[0].Addr()}
		for range 2 {
			if err := b.Replace(t.Context(), []*proxy.Port{&p}); err != nil {
				t.Fatal(err)
			}
		}
		q := p
		q.Cluster, q.Affinity = p.Cluster[1:], 0
		if err := b.Apply(t.Context(), []proxy.Update{{Name: q.Name, Port: &q}}); err != nil {
			t.Fatal(err)
		}
		if err := b.Apply(t.Context(), []proxy.Update{{Name: q.Name}}); err != nil {
			t.Fatal(err)
		}
	})
}
