package dns_test

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"testing"

	miekg "github.com/miekg/dns"
	v1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/periplus/periplus/dns"
)

func TestRefusals(t *testing.T) {
	t.Parallel()
	s, _ := start(t, dns.Config{}, fixture()...)
	good := func(change func(*miekg.Msg)) *miekg.Msg {
		q := query("web.default.svc.cluster.local.", "A")
		change(q)
		return q
	}
	for name, c := range map[string]struct {
		q     *miekg.Msg
		rcode int
	}{
		"update":        {good(func(q *miekg.Msg) { q.Opcode = miekg.OpcodeUpdate }), miekg.RcodeNotImplemented},
		"notify":        {good(func(q *miekg.Msg) { q.Opcode = miekg.OpcodeNotify }), miekg.RcodeNotImplemented},
		"status":        {good(func(q *miekg.Msg) { q.Opcode = miekg.OpcodeStatus }), miekg.RcodeNotImplemented},
		"no question":   {good(func(q *miekg.Msg) { q.Question = nil }), miekg.RcodeFormatError},
		"two questions": {good(func(q *miekg.Msg) { q.Question = append(q.Question, q.Question[0]) }), miekg.RcodeFormatError},
		"another class": {good(func(q *miekg.Msg) { q.Question[0].Qclass = miekg.ClassCHAOS }), miekg.RcodeRefused},
		"transfer":      {good(func(q *miekg.Msg) { q.Question[0].Qtype = miekg.TypeAXFR }), miekg.RcodeRefused},
		"EDNS version": {good(func(q *miekg.Msg) {
			q.SetEdns0(1232, false)
			q.IsEdns0().SetVersion(1)
		}), miekg.RcodeBadVers},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := ask(t, s, c.q, true)
			if m.Rcode != c.rcode || m.Opcode != c.q.Opcode || len(m.Answer) != 0 {
				t.Errorf("%v", m)
			}
		})
	}
	t.Run("an answer is not answered", func(t *testing.T) {
		t.Parallel()
		in, _ := good(func(q *miekg.Msg) { q.Response = true }).Pack()
		if out, err := s.Message(t.Context(), in, true); err != nil || len(out) != 0 {
			t.Errorf("%x, %v", out, err)
		}
	})
}

// TestSizes: answers fit into what the client takes.
func TestSizes(t *testing.T) {
	t.Parallel()
	var ends []discoveryv1.Endpoint
	for i := range 100 {
		ends = append(ends, end(fmt.Sprintf("10.42.1.%d", i), "", nil))
	}
	ports := slicePorts("http", 80)
	s, _ := start(t, dns.Config{},
		clusterService("many", []string{"None"}), endpoints("many-1", "many", discoveryv1.AddressTypeIPv4, ports, ends...),
		clusterService("few", []string{"None"}), endpoints("few-1", "few", discoveryv1.AddressTypeIPv4, ports, ends[:6]...),
		clusterService("web", []string{"10.43.0.9"}, port("http", v1.ProtocolTCP, 80)),
	)
	for _, c := range []struct {
		name, qtype string
		edns        uint16 // 0: none
		udp         bool
		limit       int
		truncated   bool
		all         int
	}{
		{"many", "A", 0, true, 512, true, 100},
		{"many", "A", 100, true, 512, true, 100},
		{"many", "A", 4096, true, 1232, true, 100},
		{"many", "A", 0, false, 65535, false, 100},
		{"few", "A", 0, true, 512, false, 6},
		{"few", "SRV", 0, true, 512, false, 6}, // their addresses are left out
		{"web", "A", 1232, true, 1232, false, 1},
	} {
		t.Run(fmt.Sprintf("%s %s udp=%v edns=%d", c.name, c.qtype, c.udp, c.edns), func(t *testing.T) {
			t.Parallel()
			q := query(c.name+".default.svc.cluster.local.", c.qtype)
			if c.edns != 0 {
				q.SetEdns0(c.edns, true)
			}
			in, err := q.Pack()
			if err != nil {
				t.Fatal(err)
			}
			out, err := s.Message(t.Context(), in, c.udp)
			if err != nil {
				t.Fatal(err)
			}
			m := &miekg.Msg{}
			if err := m.Unpack(out); err != nil {
				t.Fatal(err)
			}
			if len(out) > c.limit || m.Truncated != c.truncated {
				t.Errorf("%d bytes, truncated %v", len(out), m.Truncated)
			}
			if n := len(m.Answer); n > c.all || !c.truncated && n != c.all || n == 0 {
				t.Errorf("%d records of %d", n, c.all)
			}
			opt := m.IsEdns0()
			if (opt != nil) != (c.edns != 0) {
				t.Fatalf("OPT %v", opt)
			}
			if opt != nil && (opt.UDPSize() != 1232 || !opt.Do()) {
				t.Errorf("OPT %v", opt)
			}
		})
	}
}

func FuzzMessage(f *testing.F) {
	s, _ := start(f, dns.Config{}, fixture()...)
	for _, q := range []*miekg.Msg{
		query("web.default.svc.cluster.local.", "A"),
		query("_http._tcp.headless.default.svc.cluster.local.", "SRV"),
		query("20.0.43.10.in-addr.arpa.", "PTR"),
		query(reverse6("fd00::21"), "PTR"),
		query("10-42-0-3.default.pod.cluster.local.", "A"),
		query("alias.default.svc.cluster.local.", "A"),
		query("example.com.", "AAAA").SetEdns0(4096, true),
	} {
		in, err := q.Pack()
		if err != nil {
			f.Fatal(err)
		}
		f.Add(in)
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		if len(in) > 4096 {
			return
		}
		for _, udp := range []bool{true, false} {
			out, err := s.Message(t.Context(), in, udp)
			if err != nil || len(out) == 0 {
				continue
			}
			m := &miekg.Msg{}
			if err := m.Unpack(out); err != nil {
				t.Fatalf("question %x, answer %x: %v", in, out, err)
			}
			if !m.Response || udp && len(out) > 1232 {
				t.Fatalf("question %x: %d bytes, %v", in, len(out), m)
			}
		}
	})
}

func BenchmarkQuery(b *testing.B) {
	var ends []discoveryv1.Endpoint
	for i := range 10 {
		ends = append(ends, end(fmt.Sprintf("10.42.1.%d", i), "", nil))
	}
	s, _ := start(b, dns.Config{}, clusterService("web", []string{"10.43.0.9"}, port("http", v1.ProtocolTCP, 80)),
		clusterService("pets", []string{"None"}), endpoints("pets-1", "pets", discoveryv1.AddressTypeIPv4, slicePorts("http", 80), ends...))
	for _, c := range []struct{ what, name, qtype string }{
		{"service A", "web.default.svc.cluster.local.", "A"},
		{"service AAAA nodata", "web.default.svc.cluster.local.", "AAAA"},
		{"nxdomain", "example.com.default.svc.cluster.local.", "A"},
		{"headless A 10", "pets.default.svc.cluster.local.", "A"},
		{"SRV", "_http._tcp.web.default.svc.cluster.local.", "SRV"},
	} {
		b.Run(c.what, func(b *testing.B) {
			in, err := query(c.name, c.qtype).SetEdns0(1232, false).Pack()
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for b.Loop() {
				if s.Bench(b.Context(), in) == 0 {
					b.Fatal("no answer")
				}
			}
		})
	}
}

// BenchmarkUDP goes through a socket, with as many clients as processors.
func BenchmarkUDP(b *testing.B) {
	factory := informers.NewSharedInformerFactory(fake.NewClientset(fixture()...), 0)
	free, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	at := netip.MustParseAddrPort(free.LocalAddr().String())
	_ = free.Close()
	s, err := dns.New(dns.Config{Informers: factory, Domain: "cluster.local", Address: at.Addr(), Port: at.Port(), Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	factory.StartWithContext(ctx)
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	<-s.Ready()
	b.RunParallel(func(pb *testing.PB) {
		conn, err := net.Dial("udp", at.String())
		if err != nil {
			b.Error(err)
			return
		}
		defer conn.Close()
		q := query("web.default.svc.cluster.local.", "A")
		out := make([]byte, 1500)
		for pb.Next() {
			q.Id++
			in, err := q.Pack()
			if err == nil {
				_, err = conn.Write(in)
			}
			n := 0
			if err == nil {
				n, err = conn.Read(out)
			}
			if err != nil || n < 12 || out[0] != byte(q.Id>>8) || out[1] != byte(q.Id) || out[7] != 1 {
				b.Errorf("answer %x, %v", out[:n], err)
				return
			}
		}
	})
	cancel()
	if err := <-ended; err != nil {
		b.Error(err)
	}
	factory.Shutdown()
}
