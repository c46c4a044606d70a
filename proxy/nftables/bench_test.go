package nftables_test

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/periplus/periplus/linux/netnstest"
	"github.com/periplus/periplus/proxy"
)

// cluster makes ports with endpoints each.
func cluster(services, endpoints int) []*proxy.Port {
	ports := make([]*proxy.Port, services)
	at := netip.MustParseAddr("10.44.0.0")
	for i := range ports {
		p := &proxy.Port{
			Name:      proxy.PortName{Namespace: "default", Name: fmt.Sprintf("service-%d", i), Port: "http", Protocol: v1.ProtocolTCP},
			ClusterIP: netip.AddrFrom4([4]byte{10, 43, byte(i >> 8), byte(i)}), Port: 80,
		}
		for range endpoints {
			p.Cluster = append(p.Cluster, netip.AddrPortFrom(at, 8080))
			at = at.Next()
		}
		ports[i] = p
	}
	return ports
}

// BenchmarkFirstSync programs 5,000 Services with 50 endpoints each into an
// empty kernel; takeover is what a new process pays, change is one endpoint
// that comes or goes.
func BenchmarkFirstSync(b *testing.B) {
	netnstest.Run(b, func() {
		ports := cluster(5000, 50)
		for b.Loop() {
			backend := open(b)
			start := time.Now()
			if err := backend.Replace(b.Context(), ports); err != nil {
				b.Fatal(err)
			}
			b.ReportMetric(float64(time.Since(start).Milliseconds()), "ms-first")

			next := open(b)
			start = time.Now()
			if err := next.Replace(b.Context(), ports); err != nil {
				b.Fatal(err)
			}
			b.ReportMetric(float64(time.Since(start).Milliseconds()), "ms-takeover")

			changed := *ports[17]
			full := ports[17].Cluster
			const changes = 100
			start = time.Now()
			for i := range changes {
				changed.Cluster = full[:len(full)-i%2]
				p := changed
				if err := next.Apply(b.Context(), []proxy.Update{{Name: p.Name, Port: &p}}); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(time.Since(start).Microseconds())/changes, "µs-change")
			if err := next.Cleanup(); err != nil {
				b.Fatal(err)
			}
			_ = backend.Close()
			_ = next.Close()
		}
	})
}
