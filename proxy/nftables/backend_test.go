package nftables_test

import (
	"testing"

	"github.com/periplus/periplus/proxy"
	"github.com/periplus/periplus/proxy/nftables"
	"github.com/periplus/periplus/proxy/proxytest"
)

func open(t testing.TB) proxy.Backend {
	b, err := nftables.New(nftables.Config{BackendConfig: proxytest.Config()})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestSuite(t *testing.T) { proxytest.Run(t, open) }
