package dns_test

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"testing"
	"time"

	miekg "github.com/miekg/dns"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/periplus/periplus/dns"
	"github.com/periplus/periplus/linux/netns"
	"github.com/periplus/periplus/linux/netnstest"
)

// TestRun: the address and both listeners are there when the server is ready,
// the listeners are gone when it has ended, and a second one starts on the
// address that stayed.
func TestRun(t *testing.T) {
	netnstest.Run(t, func() {
		ns, err := netns.Current()
		if err != nil {
			t.Error(err)
			return
		}
		defer ns.Close()
		for range 2 {
			runOnce(t, ns)
		}
	})
}

// runOnce is called on a thread in the namespace; the server gets another one.
func runOnce(t *testing.T, ns *netns.NS) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	factory := informers.NewSharedInformerFactory(fake.NewClientset(fixture()...), 0)
	called := make(chan struct{})
	s, err := dns.New(dns.Config{
		Informers: factory, Domain: "cluster.local", Address: self, ResolvConf: "/nonexistent/resolv.conf",
		OnReady: func() { close(called) },
	})
	if err != nil {
		t.Error(err)
		return
	}
	if err := s.Healthy(); !errors.Is(err, dns.ErrNotReady) {
		t.Errorf("healthy before the start: %v", err)
	}
	factory.StartWithContext(ctx)
	defer factory.Shutdown()
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- ns.Do(func() error { return s.Run(ctx) }) }()
	select {
	case <-called:
	case err := <-ended:
		t.Errorf("ended early: %v", err)
		return
	}
	if err := s.Healthy(); err != nil {
		t.Error(err)
	}
	at := netip.AddrPortFrom(self, 53).String()
	for _, network := range []string{"udp", "tcp"} {
		conn, err := net.Dial(network, at)
		if err != nil {
			t.Error(err)
			continue
		}
		c := &miekg.Conn{Conn: conn}
		_ = c.SetDeadline(time.Now().Add(10 * time.Second))
		for range 3 { // several questions over one connection
			if err := c.WriteMsg(query("web.default.svc.cluster.local.", "A")); err != nil {
				t.Error(err)
				break
			}
			if m, err := c.ReadMsg(); err != nil || len(m.Answer) != 1 {
				t.Errorf("%s: %v, %v", network, m, err)
				break
			}
		}
		if err := c.WriteMsg(query("www.example.com.", "A")); err != nil {
			t.Error(err)
		} else if m, err := c.ReadMsg(); err != nil || m.Rcode != miekg.RcodeServerFailure {
			t.Errorf("%s: %v, %v", network, m, err)
		}
		defer c.Close() // open while the server ends
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if err := s.Healthy(); !errors.Is(err, dns.ErrStopped) {
		t.Errorf("healthy after the end: %v", err)
	}
	if conn, err := net.Dial("tcp", at); err == nil {
		_ = conn.Close()
		t.Error("a listener is still open")
	}
	// The address stays: a socket can be bound to it.
	l, err := net.Listen("tcp", at)
	if err != nil {
		t.Error(err)
		return
	}
	_ = l.Close()
}

func TestRunEndsBeforeSync(t *testing.T) {
	t.Parallel()
	factory := informers.NewSharedInformerFactory(fake.NewClientset(), 0)
	s, err := dns.New(dns.Config{Informers: factory, Domain: "cluster.local", Address: self})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Run(ctx); err != nil { // the informers are never started
		t.Error(err)
	}
}

func TestConfig(t *testing.T) {
	t.Parallel()
	factory := informers.NewSharedInformerFactory(fake.NewClientset(), 0)
	for name, c := range map[string]dns.Config{
		"no informers": {Domain: "cluster.local", Address: self},
		"no domain":    {Informers: factory, Address: self},
		"root domain":  {Informers: factory, Domain: ".", Address: self},
		"no address":   {Informers: factory, Domain: "cluster.local"},
		"stub without resolvers": {Informers: factory, Domain: "cluster.local", Address: self,
			StubDomains: map[string][]netip.AddrPort{"corp": nil}},
		"stub at ourselves": {Informers: factory, Domain: "cluster.local", Address: self,
			StubDomains: map[string][]netip.AddrPort{"corp": {netip.AddrPortFrom(self, 53)}}},
	} {
		if _, err := dns.New(c); err == nil {
			t.Errorf("%s is accepted", name)
		}
	}
}

func TestEnsure(t *testing.T) {
	t.Parallel()
	existing := func(change func(*v1.Service)) *v1.Service {
		s := &v1.Service{
			ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "kube-dns", UID: "1", Labels: map[string]string{"theirs": "kept"}},
			Spec:       v1.ServiceSpec{ClusterIP: self.String(), ClusterIPs: []string{self.String()}},
		}
		change(s)
		return s
	}
	for name, have := range map[string]*v1.Service{
		"absent":            nil,
		"other ports":       existing(func(s *v1.Service) { s.Spec.Ports = []v1.ServicePort{{Name: "dns", Port: 5353}} }),
		"with a selector":   existing(func(s *v1.Service) { s.Spec.Selector = map[string]string{"k8s-app": "kube-dns"} }),
		"other cluster IP":  existing(func(s *v1.Service) { s.Spec.ClusterIP, s.Spec.ClusterIPs = "10.43.0.99", []string{"10.43.0.99"} }),
		"without the label": existing(func(*v1.Service) {}),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			client := fake.NewClientset()
			if have != nil {
				client = fake.NewClientset(have)
			}
			for range 2 {
				if err := dns.Ensure(t.Context(), client, self); err != nil {
					t.Fatal(err)
				}
			}
			s, err := client.CoreV1().Services("kube-system").Get(t.Context(), "kube-dns", metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if s.Spec.ClusterIP != "10.43.0.10" || len(s.Spec.Selector) != 0 || s.Annotations["periplus.io/node-local"] != "true" ||
				s.Labels["k8s-app"] != "kube-dns" || s.Labels["kubernetes.io/cluster-service"] != "true" || s.Labels["kubernetes.io/name"] != "CoreDNS" {
				t.Errorf("%+v", s)
			}
			if p := s.Spec.Ports; len(p) != 2 || p[0].Name != "dns" || p[0].Protocol != v1.ProtocolUDP || p[0].Port != 53 ||
				p[1].Name != "dns-tcp" || p[1].Protocol != v1.ProtocolTCP || p[1].Port != 53 {
				t.Errorf("ports %+v", p)
			}
			if have != nil && have.Spec.ClusterIP == self.String() && s.Labels["theirs"] != "kept" {
				t.Error("a label of others has gone")
			}
			writes := 0
			for _, a := range client.Actions() {
				if a.GetVerb() != "get" {
					writes++
				}
			}
			if writes > 2 || name != "other cluster IP" && writes != 1 {
				t.Errorf("%d writes", writes)
			}
		})
	}
}
