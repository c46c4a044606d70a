package bridge_test

import (
	"fmt"
	"net/netip"
	"testing"

	"github.com/periplus/periplus/cni"
	"github.com/periplus/periplus/cni/bridge"
	"github.com/periplus/periplus/cni/cnitest"
	"github.com/periplus/periplus/linux/link"
	"github.com/periplus/periplus/linux/netnstest"
)

func open(t testing.TB, dir string) *bridge.Network {
	t.Helper()
	n, err := bridge.New(bridge.Config{
		StateDir:     dir,
		ClusterCIDRs: []netip.Prefix{cnitest.ClusterCIDR},
		ServiceCIDRs: []netip.Prefix{cnitest.ServiceCIDR},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = n.Close() })
	return n
}

func TestSuite(t *testing.T) {
	cnitest.Run(t, func(t testing.TB, dir string) cni.Network { return open(t, dir) })
}

func TestCleanupLeavesNothing(t *testing.T) {
	t.Parallel()
	netnstest.Run(t, func() {
		n := open(t, t.TempDir())
		if err := n.Configure(t.Context(), []netip.Prefix{cnitest.NodeCIDR}); err != nil {
			t.Fatal(err)
		}
		if _, err := n.Add(t.Context(), cni.Attachment{SandboxID: "a", NetNS: netnstest.New(t).Path}); err != nil {
			t.Fatal(err)
		}
		if err := n.Cleanup(); err != nil {
			t.Fatal(err)
		}
		c, err := link.Open()
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if _, err := c.Get("peri0"); err == nil {
			t.Error("the bridge is still there")
		}
	})
}

func BenchmarkAddDel(b *testing.B) {
	netnstest.Run(b, func() {
		n := open(b, b.TempDir())
		if err := n.Configure(b.Context(), []netip.Prefix{cnitest.NodeCIDR}); err != nil {
			b.Fatal(err)
		}
		i := 0
		for b.Loop() {
			b.StopTimer()
			i++
			a := cni.Attachment{SandboxID: fmt.Sprint("s", i), NetNS: netnstest.New(b).Path, IfName: "eth0"}
			b.StartTimer()
			if _, err := n.Add(b.Context(), a); err != nil {
				b.Fatal(err)
			}
			b.StopTimer()
			if err := n.Del(b.Context(), a); err != nil {
				b.Fatal(err)
			}
			b.StartTimer()
		}
	})
}
