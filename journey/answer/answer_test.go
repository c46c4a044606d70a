package answer_test

import (
	"context"
	"net/netip"
	"os/exec"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/periplus/periplus/journey/answer"
	"github.com/periplus/periplus/linux/netnstest"
	"github.com/periplus/periplus/linux/nft"
	"github.com/periplus/periplus/proxy"
	"github.com/periplus/periplus/proxy/nftables"
	"github.com/periplus/periplus/proxy/proxytest"
)

type seen struct {
	ip netip.Addr
	at time.Time
}

func TestFirstAnswer(t *testing.T) {
	t.Parallel()
	netnstest.Run(t, func() {
		node := proxytest.NewNode(t)
		a, b := node.Pod(), node.Pod()
		a.Serve(80)
		b.Serve(80)
		backend, err := nftables.New(nftables.Config{BackendConfig: proxytest.Config()})
		must(t, err)
		defer backend.Close()
		vip := netip.MustParseAddrPort("10.43.0.10:80")
		must(t, backend.Replace(t.Context(), []*proxy.Port{{
			Name:      proxy.PortName{Namespace: "default", Name: "web", Protocol: v1.ProtocolTCP},
			ClusterIP: vip.Addr(), Port: vip.Port(), Cluster: []netip.AddrPort{netip.AddrPortFrom(a.IP, 80)},
		}}))

		answers := make(chan seen, 10)
		w, err := answer.New(answer.Config{OnAnswer: func(ip netip.Addr, at time.Time) { answers <- seen{ip, at} }})
		must(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- w.Run(ctx) }()
		must(t, w.Watch(a.IP))
		must(t, w.Watch(a.IP))
		must(t, w.Watch(b.IP))
		if out, err := exec.Command("nft", "list", "table", "ip", "periplus-answer").CombinedOutput(); err == nil {
			t.Logf("%s", out)
		}

		// A probe: straight from the node.
		before := time.Now().Add(-time.Second)
		_, err = node.Dial(netip.AddrPortFrom(a.IP, 80))
		must(t, err)
		// Through the Service, twice: told once.
		for range 2 {
			_, err = node.Dial(vip)
			must(t, err)
		}
		if s := <-answers; s.ip != a.IP || s.at.Before(before) || s.at.After(time.Now().Add(time.Second)) {
			t.Errorf("first answer %v, want %s", s, a.IP)
		}
		// From pod to pod over the bridge.
		_, err = a.Dial(netip.AddrPortFrom(b.IP, 80))
		must(t, err)
		if s := <-answers; s.ip != b.IP {
			t.Errorf("first answer of %s, want %s", s.ip, b.IP)
		}
		// Nothing is left, and nobody else is told of.
		c, err := nft.Open()
		must(t, err)
		defer c.Close()
		must(t, w.Watch(a.IP))
		w.Unwatch(a.IP)
		if has, err := c.HasTable(nft.IPv4, "periplus-answer"); err != nil || has {
			t.Errorf("table is there: %v, %v", has, err)
		}
		cancel()
		must(t, <-ended)
		if len(answers) > 0 {
			t.Errorf("told again: %v", <-answers)
		}
	})
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
