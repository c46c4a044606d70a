package nftables_test

import (
	"testing"

	"net/netip"

	"github.com/periplus/periplus/proxy"
	"github.com/periplus/periplus/proxy/nftables"
	"github.com/periplus/periplus/proxy/proxytest"
)

func open(t testing.TB) proxy.Backend {
	b, err := nftables.New(nftables.Config{
		ServiceCIDRs: []netip.Prefix{proxytest.ServiceCIDR},
		PodCIDRs:     []netip.Prefix{proxytest.PodCIDR},
	})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestSuite(t *testing.T) { proxytest.Run(t, open) }
