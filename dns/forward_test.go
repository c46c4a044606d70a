package dns_test

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	miekg "github.com/miekg/dns"

	"github.com/periplus/periplus/dns"
)

// A resolver is an upstream resolver on a loopback port.
type resolver struct {
	addr       netip.AddrPort
	udp, tcp   atomic.Int32 // questions
	lastUDP    atomic.Pointer[miekg.Msg]
	answerFrom func(q *miekg.Msg, udp bool) *miekg.Msg
}

// record answers with records in presentation format; a SOA record goes to the
// authority section.
func record(rcode int, texts ...string) func(*miekg.Msg, bool) *miekg.Msg {
	return func(q *miekg.Msg, _ bool) *miekg.Msg {
		m := (&miekg.Msg{}).SetRcode(q, rcode)
		for _, text := range texts {
			rr, err := miekg.NewRR(text)
			if err != nil {
				panic(err)
			}
			if rr.Header().Rrtype == miekg.TypeSOA {
				m.Ns = append(m.Ns, rr)
			} else {
				m.Answer = append(m.Answer, rr)
			}
		}
		return m
	}
}

// newResolver starts one; a nil answer is silence.
func newResolver(t testing.TB, answer func(*miekg.Msg, bool) *miekg.Msg) *resolver {
	t.Helper()
	var tcp net.Listener
	var udp net.PacketConn
	for udp == nil {
		var err error
		if tcp, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
			t.Fatal(err)
		}
		switch udp, err = net.ListenPacket("udp", tcp.Addr().String()); {
		case errors.Is(err, syscall.EADDRINUSE):
			_ = tcp.Close() // the same number is somebody's over UDP
		case err != nil:
			t.Fatal(err)
		}
	}
	r := &resolver{addr: netip.MustParseAddrPort(tcp.Addr().String()), answerFrom: answer}
	var running sync.WaitGroup
	serve := func(s *miekg.Server, count *atomic.Int32, isUDP bool) {
		started := make(chan struct{})
		s.NotifyStartedFunc = func() { close(started) }
		s.Handler = miekg.HandlerFunc(func(w miekg.ResponseWriter, q *miekg.Msg) {
			count.Add(1)
			if isUDP {
				r.lastUDP.Store(q)
			}
			if m := r.answerFrom(q, isUDP); m != nil {
				_ = w.WriteMsg(m)
			}
		})
		running.Go(func() { _ = s.ActivateAndServe() })
		<-started
		t.Cleanup(func() { _ = s.Shutdown() })
	}
	t.Cleanup(running.Wait)
	serve(&miekg.Server{PacketConn: udp}, &r.udp, true)
	serve(&miekg.Server{Listener: tcp}, &r.tcp, false)
	return r
}

// clock is moved by hand.
type clock struct{ nanos atomic.Int64 }

func newClock() *clock {
	c := &clock{}
	c.nanos.Store(time.Now().UnixNano())
	return c
}
func (c *clock) now() time.Time       { return time.Unix(0, c.nanos.Load()) }
func (c *clock) move(d time.Duration) { c.nanos.Add(int64(d)) }

func TestForward(t *testing.T) {
	t.Parallel()
	const soa = "example.com. 600 IN SOA ns.example.com. h.example.com. 1 2 3 4 10"
	t.Run("an answer is kept for its time", func(t *testing.T) {
		t.Parallel()
		up := newResolver(t, record(miekg.RcodeSuccess, "www.example.com. 20 IN A 192.0.2.1"))
		s, _ := start(t, dns.Config{})
		s.SetUpstreams(up.addr)
		c := newClock()
		s.SetClock(c.now)
		for i, want := range []struct {
			name string
			wait time.Duration
			ttl  uint32
			n    int32
		}{
			{"www.example.com.", 0, 20, 1},
			{"WWW.example.COM.", 7 * time.Second, 13, 1},
			{"www.example.com.", 13 * time.Second, 20, 2},
		} {
			c.move(want.wait)
			m := ask(t, s, query(want.name, "A"), true)
			if len(m.Answer) != 1 || m.Answer[0].Header().Ttl != want.ttl || m.Authoritative || !m.RecursionAvailable || m.Question[0].Name != want.name {
				t.Errorf("%d: %v", i, m)
			}
			if n := up.udp.Load(); n != want.n {
				t.Errorf("%d: %d questions, want %d", i, n, want.n)
			}
		}
		if opt := up.lastUDP.Load().IsEdns0(); opt == nil || opt.UDPSize() != 1232 {
			t.Errorf("upstream question has OPT %v", opt)
		}
	})
	t.Run("negative answers as the SOA record says", func(t *testing.T) {
		t.Parallel()
		for _, c := range []struct {
			name   string
			answer func(*miekg.Msg, bool) *miekg.Msg
			kept   bool
		}{
			{"nxdomain", record(miekg.RcodeNameError, soa), true},
			{"no data", record(miekg.RcodeSuccess, soa), true},
			{"alias without data", record(miekg.RcodeSuccess, "a.example.com. 300 IN CNAME b.example.com.", soa), true},
			{"no SOA record", record(miekg.RcodeNameError), false},
			{"time to live 0", record(miekg.RcodeSuccess, "a.example.com. 0 IN A 192.0.2.1"), false},
		} {
			up := newResolver(t, c.answer)
			s, _ := start(t, dns.Config{})
			s.SetUpstreams(up.addr)
			clk := newClock()
			s.SetClock(clk.now)
			first := ask(t, s, query("a.example.com.", "A"), true)
			clk.move(9 * time.Second)
			second := ask(t, s, query("a.example.com.", "A"), true)
			if first.Rcode != second.Rcode || len(first.Ns) != len(second.Ns) {
				t.Errorf("%s: %v then %v", c.name, first, second)
			}
			if got := up.udp.Load() == 1; got != c.kept {
				t.Errorf("%s: kept %v", c.name, got)
			}
			clk.move(2 * time.Second)
			before := up.udp.Load()
			ask(t, s, query("a.example.com.", "A"), true)
			if up.udp.Load() == before {
				t.Errorf("%s: kept for longer than the SOA record's minimum", c.name)
			}
		}
	})
	t.Run("signatures are asked for separately", func(t *testing.T) {
		t.Parallel()
		up := newResolver(t, record(miekg.RcodeSuccess, "www.example.com. 20 IN A 192.0.2.1"))
		s, _ := start(t, dns.Config{})
		s.SetUpstreams(up.addr)
		ask(t, s, query("www.example.com.", "A"), true)
		m := ask(t, s, query("www.example.com.", "A").SetEdns0(1232, true), true)
		if n := up.udp.Load(); n != 2 || !up.lastUDP.Load().IsEdns0().Do() || m.IsEdns0() == nil {
			t.Errorf("%d questions, %v", n, m)
		}
	})
	t.Run("a long answer comes over TCP", func(t *testing.T) {
		t.Parallel()
		var list []string
		for range 40 {
			list = append(list, `big.example.com. 20 IN TXT "`+strings.Repeat("x", 100)+`"`)
		}
		up := newResolver(t, func(q *miekg.Msg, udp bool) *miekg.Msg {
			m := record(miekg.RcodeSuccess, list...)(q, udp)
			if udp {
				m.Truncate(512)
			}
			return m
		})
		s, _ := start(t, dns.Config{})
		s.SetUpstreams(up.addr)
		m := ask(t, s, query("big.example.com.", "TXT"), false)
		if len(m.Answer) != 40 || m.Truncated || up.tcp.Load() != 1 {
			t.Errorf("%d records, truncated %v, %d questions over TCP", len(m.Answer), m.Truncated, up.tcp.Load())
		}
		if m := ask(t, s, query("big.example.com.", "TXT"), true); !m.Truncated {
			t.Errorf("over UDP: %v", m)
		}
	})
	t.Run("a resolver without EDNS", func(t *testing.T) {
		t.Parallel()
		up := newResolver(t, func(q *miekg.Msg, udp bool) *miekg.Msg {
			if q.IsEdns0() != nil {
				return (&miekg.Msg{}).SetRcodeFormatError(q)
			}
			return record(miekg.RcodeSuccess, "www.example.com. 20 IN A 192.0.2.1")(q, udp)
		})
		s, _ := start(t, dns.Config{})
		s.SetUpstreams(up.addr)
		if m := ask(t, s, query("www.example.com.", "A"), true); len(m.Answer) != 1 {
			t.Errorf("%v", m)
		}
	})
	t.Run("those who ask at the same time share a question", func(t *testing.T) {
		t.Parallel()
		arrived, release := make(chan struct{}), make(chan struct{})
		arrive := sync.OnceFunc(func() { close(arrived) })
		up := newResolver(t, func(q *miekg.Msg, udp bool) *miekg.Msg {
			arrive()
			<-release
			return record(miekg.RcodeSuccess, "www.example.com. 20 IN A 192.0.2.1")(q, udp)
		})
		// One that nobody needs: the second attempt goes to it, so that the first is not repeated.
		other := newResolver(t, func(*miekg.Msg, bool) *miekg.Msg { return nil })
		s, _ := start(t, dns.Config{})
		s.SetUpstreams(up.addr, other.addr)
		var clients sync.WaitGroup
		var good atomic.Int32
		client := func() {
			if m := ask(t, s, query("www.example.com.", "A"), true); len(m.Answer) == 1 {
				good.Add(1)
			}
		}
		clients.Go(client)
		<-arrived
		for range 50 {
			clients.Go(client)
		}
		close(release)
		clients.Wait()
		if up.udp.Load() != 1 || good.Load() != 51 {
			t.Errorf("%d questions, %d answers", up.udp.Load(), good.Load())
		}
	})
	t.Run("a stub domain has its own resolvers", func(t *testing.T) {
		t.Parallel()
		general := newResolver(t, record(miekg.RcodeNameError, soa))
		special := newResolver(t, record(miekg.RcodeSuccess, "db.corp.example. 20 IN A 192.0.2.7"))
		s, _ := start(t, dns.Config{StubDomains: map[string][]netip.AddrPort{"Corp.Example": {special.addr}}})
		s.SetUpstreams(general.addr)
		if m := ask(t, s, query("db.corp.example.", "A"), true); len(m.Answer) != 1 {
			t.Errorf("%v", m)
		}
		if m := ask(t, s, query("db.notcorp.example.", "A"), true); m.Rcode != miekg.RcodeNameError {
			t.Errorf("%v", m)
		}
	})
	t.Run("ExternalName", func(t *testing.T) {
		t.Parallel()
		up := newResolver(t, record(miekg.RcodeSuccess, "www.example.com. 20 IN A 192.0.2.1"))
		s, _ := start(t, dns.Config{}, externalService("out", "www.example.com"))
		s.SetUpstreams(up.addr)
		for range 2 {
			m := ask(t, s, query("out.default.svc.cluster.local.", "A"), true)
			want := []string{"out.default.svc.cluster.local. 5 IN CNAME www.example.com.", "www.example.com. 20 IN A 192.0.2.1"}
			if got := lines(m.Answer); !slices.Equal(got, want) || !m.Authoritative {
				t.Errorf("%v", m)
			}
		}
		if up.udp.Load() != 1 {
			t.Errorf("%d questions", up.udp.Load())
		}
	})
}

func TestUpstreamFailures(t *testing.T) {
	t.Parallel()
	ede := func(m *miekg.Msg) (uint16, string) {
		if opt := m.IsEdns0(); opt != nil {
			for _, o := range opt.Option {
				if e, ok := o.(*miekg.EDNS0_EDE); ok {
					return e.InfoCode, e.ExtraText
				}
			}
		}
		return 0, ""
	}
	good := record(miekg.RcodeSuccess, "www.example.com. 20 IN A 192.0.2.1")
	silent := func(*miekg.Msg, bool) *miekg.Msg { return nil }
	q := func() *miekg.Msg { return query("www.example.com.", "A").SetEdns0(1232, false) }
	t.Run("no resolver", func(t *testing.T) {
		t.Parallel()
		s, _ := start(t, dns.Config{}, externalService("out", "www.example.com"))
		m := ask(t, s, q(), true)
		if code, why := ede(m); m.Rcode != miekg.RcodeServerFailure || code != miekg.ExtendedErrorCodeNoReachableAuthority || !strings.Contains(why, "/nonexistent/resolv.conf") {
			t.Errorf("%v", m)
		}
		if m := ask(t, s, query("out.default.svc.cluster.local.", "A"), true); m.Rcode != miekg.RcodeServerFailure || len(m.Answer) != 0 {
			t.Errorf("%v", m)
		}
		if m := ask(t, s, query("out.default.svc.cluster.local.", "CNAME"), true); len(m.Answer) != 1 {
			t.Errorf("%v", m)
		}
	})
	t.Run("nobody listens", func(t *testing.T) {
		t.Parallel()
		conn, err := net.ListenPacket("udp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		addr := netip.MustParseAddrPort(conn.LocalAddr().String())
		_ = conn.Close()
		s, _ := start(t, dns.Config{})
		s.SetUpstreams(addr)
		m := ask(t, s, q(), true)
		if code, _ := ede(m); m.Rcode != miekg.RcodeServerFailure || code != miekg.ExtendedErrorCodeNetworkError {
			t.Errorf("%v", m)
		}
	})
	t.Run("the second one is asked beside a silent one, and first the next time", func(t *testing.T) {
		t.Parallel()
		dead, alive := newResolver(t, silent), newResolver(t, good)
		s, _ := start(t, dns.Config{})
		s.SetUpstreams(dead.addr, alive.addr)
		if m := ask(t, s, q(), true); len(m.Answer) != 1 {
			t.Fatalf("%v", m)
		}
		before := dead.udp.Load()
		if m := ask(t, s, query("www.example.com.", "AAAA"), true); len(m.Answer) != 1 || dead.udp.Load() != before {
			t.Errorf("%v, %d questions", m, dead.udp.Load())
		}
	})
	t.Run("a refusal is not the last word", func(t *testing.T) {
		t.Parallel()
		bad, fine := newResolver(t, record(miekg.RcodeServerFailure)), newResolver(t, good)
		s, _ := start(t, dns.Config{})
		s.SetUpstreams(bad.addr, fine.addr)
		if m := ask(t, s, q(), true); len(m.Answer) != 1 {
			t.Errorf("%v", m)
		}
		s.SetUpstreams(bad.addr)
		if m := ask(t, s, query("mail.example.com.", "A"), true); m.Rcode != miekg.RcodeServerFailure {
			t.Errorf("%v", m)
		}
	})
	t.Run("the end of the server ends the wait", func(t *testing.T) {
		t.Parallel()
		ctx, cancel := context.WithCancel(t.Context())
		up := newResolver(t, func(*miekg.Msg, bool) *miekg.Msg {
			cancel()
			return nil
		})
		s, _ := start(t, dns.Config{})
		s.SetUpstreams(up.addr)
		in, _ := q().Pack()
		if out, err := s.Message(ctx, in, true); err != nil || len(out) == 0 {
			t.Errorf("%x, %v", out, err)
		}
	})
}

func TestResolvers(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		conf, stub string
		want       []string
	}{
		"several":                {"# comment\nsearch example.com\nnameserver 192.0.2.1\nnameserver\t2001:db8::1 \nnameserver 192.0.2.1\noptions ndots:2\n", "", []string{"192.0.2.1:53", "[2001:db8::1]:53"}},
		"zone":                   {"nameserver fe80::1%eth0\n", "", []string{"[fe80::1%eth0]:53"}},
		"bad lines":              {"nameserver\nnameserver localhost\nnameserver 192.0.2.300\nnameservers 192.0.2.1\n", "", nil},
		"ourselves":              {"nameserver 10.43.0.10\nnameserver 192.0.2.1\n", "", []string{"192.0.2.1:53"}},
		"only ourselves":         {"nameserver 10.43.0.10\n", "", nil},
		"a stub":                 {"nameserver 127.0.0.53\n", "nameserver 192.0.2.9\n", []string{"192.0.2.9:53"}},
		"a stub before us":       {"nameserver 127.0.0.53\n", "nameserver 10.43.0.10\nnameserver 192.0.2.9\n", []string{"192.0.2.9:53"}},
		"a stub of nothing":      {"nameserver 127.0.0.53\n", "", []string{"127.0.0.53:53"}},
		"a stub and another":     {"nameserver 127.0.0.53\nnameserver 192.0.2.1\n", "nameserver 192.0.2.9\n", []string{"127.0.0.53:53", "192.0.2.1:53"}},
		"a resolver on loopback": {"nameserver 127.0.0.1\n", "nameserver 192.0.2.9\n", []string{"127.0.0.1:53"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			conf, stub := filepath.Join(dir, "resolv.conf"), filepath.Join(dir, "stub.conf")
			if err := os.WriteFile(conf, []byte(c.conf), 0o644); err != nil {
				t.Fatal(err)
			}
			if c.stub != "" {
				if err := os.WriteFile(stub, []byte(c.stub), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			list, err := dns.Resolvers(conf, stub, self)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, a := range list {
				got = append(got, a.String())
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("%v, want %v", got, c.want)
			}
		})
	}
}

// TestResolvConfChanges: a question that goes upstream sees the file as it is now.
func TestResolvConfChanges(t *testing.T) {
	t.Parallel()
	conf := filepath.Join(t.TempDir(), "resolv.conf")
	s, _ := start(t, dns.Config{ResolvConf: conf})
	c := newClock()
	s.SetClock(c.now)
	why := func() string {
		m := ask(t, s, query("www.example.com.", "A").SetEdns0(1232, false), true)
		return m.IsEdns0().String()
	}
	if got := why(); !strings.Contains(got, "no upstream resolver") {
		t.Errorf("without the file: %s", got)
	}
	// 127.0.0.99 has no resolver on port 53: it refuses at once.
	if err := os.WriteFile(conf, []byte("nameserver 127.0.0.99\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	c.move(2 * time.Second)
	if got := why(); !strings.Contains(got, "127.0.0.99:53") {
		t.Errorf("with the file: %s", got)
	}
}

func FuzzResolvConf(f *testing.F) {
	f.Add("nameserver 192.0.2.1\nnameserver fe80::1%eth0\n")
	f.Fuzz(func(t *testing.T, text string) {
		conf := filepath.Join(t.TempDir(), "resolv.conf")
		if err := os.WriteFile(conf, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		list, _ := dns.Resolvers(conf, "", self)
		for _, a := range list {
			if !a.IsValid() || a.Addr() == self {
				t.Errorf("%q: %s", text, a)
			}
		}
	})
}
