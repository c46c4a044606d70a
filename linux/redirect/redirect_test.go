package redirect_test

import (
	"errors"
	"flag"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"testing"

	"github.com/periplus/periplus/linux/netnstest"
	"github.com/periplus/periplus/linux/redirect"
)

var update = flag.Bool("update", false, "write the golden files anew")

var classic = redirect.Config{OutboundPort: 15001, InboundPort: 15006, TunnelPort: 15008, ID: 1337, OwnPorts: []uint16{15090, 15021, 15020}}

func TestText(t *testing.T) {
	t.Parallel()
	picky := classic
	picky.InboundPorts = []uint16{8080}
	picky.ExcludeInbound = []uint16{9000}
	picky.ExcludeOutbound = []uint16{6379}
	picky.OutboundRanges = []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}
	picky.ExcludeRanges = []netip.Prefix{netip.MustParsePrefix("10.9.0.0/16")}
	for name, c := range map[string]redirect.Config{"classic": classic, "picky": picky} {
		golden := filepath.Join("testdata", name+".rules")
		if *update {
			if err := os.WriteFile(golden, []byte(c.Text()), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(golden)
		if err != nil {
			t.Fatal(err)
		}
		if got := c.Text(); got != string(want) {
			t.Errorf("%s:\n%s\nwant:\n%s", name, got, want)
		}
	}
}

// The test is root, not the proxy: what it sends to an address that is not its own
// comes to the outbound port, what is for itself goes where it was sent.
func TestApply(t *testing.T) {
	t.Parallel()
	netnstest.Run(t, func() {
		if err := redirect.Apply(classic); err != nil {
			t.Fatal(err)
		}
		if err := redirect.Apply(classic); err != nil {
			t.Fatalf("the second time: %v", err)
		}
		l, err := net.Listen("tcp4", "127.0.0.1:15001")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		direct, err := net.Dial("tcp4", "127.0.0.1:15001")
		if err != nil {
			t.Fatal(err)
		}
		defer direct.Close()
		accepted, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		defer accepted.Close()
		if dst, err := redirect.OriginalDestination(accepted); err == nil && dst.Port() != 15001 || err != nil && !errors.Is(err, redirect.ErrNotRedirected) {
			t.Errorf("direct connection: %v, %v", dst, err)
		}
	})
}
