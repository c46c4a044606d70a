package capture_test

import (
	"strings"
	"testing"

	"github.com/periplus/periplus/mesh/capture"
)

func TestParse(t *testing.T) {
	t.Parallel()
	all := []string{"-p", "15001", "-z", "15006", "-u", "1337", "-m", "REDIRECT", "-i", "*", "-x", "", "-b", "*", "-d", "15090,15021,15020", "-o", ""}
	c, err := capture.Parse(all)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"--dport 15020 -j RETURN", "-j REDIRECT --to-ports 15001", "-A ISTIO_INBOUND -p tcp -j ISTIO_IN_REDIRECT"} {
		if !strings.Contains(c.Text(), want) {
			t.Errorf("no %q in\n%s", want, c.Text())
		}
	}
	// No port, and no destination, is something else than all of them.
	c, err = capture.Parse([]string{"-b", "", "-i", ""})
	if err != nil {
		t.Fatal(err)
	}
	if s := c.Text(); strings.Contains(s, "-j ISTIO_REDIRECT\n") || strings.Contains(s, "-A ISTIO_INBOUND -p tcp -j ISTIO_IN_REDIRECT") {
		t.Errorf("something is captured:\n%s", s)
	}
	for _, bad := range [][]string{{"-b", "x"}, {"-d", "70000"}, {"-i", "10.0.0.0"}, {"-m", "TPROXY"}, {"-q"}} {
		if _, err := capture.Parse(bad); err == nil {
			t.Errorf("%v was taken", bad)
		}
	}
}
