package iptables_test

import (
	"context"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/periplus/periplus/linux/netnstest"
	"github.com/periplus/periplus/proxy"
	"github.com/periplus/periplus/proxy/proxytest"
)

var updateGolden = flag.Bool("update", false, "write the golden files")

// TestClassicChains shows the rules of one port as iptables-save prints them.
func TestClassicChains(t *testing.T) {
	t.Parallel()
	netnstest.Run(t, func() {
		b := open(t)
		defer b.Close()
		if err := b.Replace(context.Background(), []*proxy.Port{proxytest.Example()}); err != nil {
			t.Fatal(err)
		}
		got := rules(t)
		golden := filepath.Join("testdata", "classic.txt")
		if *updateGolden {
			if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(golden)
		if err != nil {
			t.Fatal(err)
		}
		if got != string(want) {
			t.Errorf("got:\n%s\nwant:\n%s", got, want)
		}
		for _, share := range []string{"0.33333", "0.50000"} {
			if !strings.Contains(got, "--probability "+share) {
				t.Errorf("no rule with probability %s", share)
			}
		}
	})
}
