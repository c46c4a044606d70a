package dns_test

import (
	"context"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	miekg "github.com/miekg/dns"
	v1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/utils/ptr"

	"github.com/periplus/periplus/dns"
)

var self = netip.MustParseAddr("10.43.0.10")

func clusterService(name string, ips []string, ports ...v1.ServicePort) *v1.Service {
	return &v1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name},
		Spec:       v1.ServiceSpec{Type: v1.ServiceTypeClusterIP, ClusterIP: ips[0], ClusterIPs: ips, Ports: ports},
	}
}

func externalService(name, target string) *v1.Service {
	return &v1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name},
		Spec:       v1.ServiceSpec{Type: v1.ServiceTypeExternalName, ExternalName: target},
	}
}

func port(name string, protocol v1.Protocol, number int32) v1.ServicePort {
	return v1.ServicePort{Name: name, Protocol: protocol, Port: number}
}

func endpoints(name, service string, family discoveryv1.AddressType, ports []discoveryv1.EndpointPort, ends ...discoveryv1.Endpoint) *discoveryv1.EndpointSlice {
	return &discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Namespace: "default", Name: name, Labels: map[string]string{discoveryv1.LabelServiceName: service}},
		AddressType: family, Ports: ports, Endpoints: ends,
	}
}

func end(address, hostname string, ready *bool) discoveryv1.Endpoint {
	e := discoveryv1.Endpoint{Addresses: []string{address}, Conditions: discoveryv1.EndpointConditions{Ready: ready}}
	if hostname != "" {
		e.Hostname = &hostname
	}
	return e
}

func slicePorts(name string, number int32) []discoveryv1.EndpointPort {
	return []discoveryv1.EndpointPort{{Name: &name, Port: &number, Protocol: ptr.To(v1.ProtocolTCP)}}
}

// fixture is the cluster of the table below.
func fixture() []runtime.Object {
	return []runtime.Object{
		clusterService("web", []string{"10.43.0.20"}, port("http", v1.ProtocolTCP, 80), port("metrics", v1.ProtocolTCP, 9090)),
		endpoints("web-1", "web", discoveryv1.AddressTypeIPv4, slicePorts("http", 8080), end("10.42.0.7", "", nil)),
		clusterService("dual", []string{"10.43.0.21", "fd00::21"}, port("", v1.ProtocolTCP, 443)),
		clusterService("resolver", []string{"10.43.0.22"}, port("dns", v1.ProtocolUDP, 53)),
		clusterService("headless", []string{"None"}, port("http", v1.ProtocolTCP, 80)),
		endpoints("headless-1", "headless", discoveryv1.AddressTypeIPv4, slicePorts("http", 8080),
			end("10.42.0.3", "pet-0", nil), end("10.42.0.4", "", ptr.To(true)), end("10.42.0.5", "pet-2", ptr.To(false))),
		endpoints("headless-2", "headless", discoveryv1.AddressTypeIPv6, slicePorts("http", 8080), end("fd01::3", "pet-0", nil)),
		clusterService("empty", []string{"None"}, port("http", v1.ProtocolTCP, 80)),
		endpoints("empty-1", "empty", discoveryv1.AddressTypeIPv4, slicePorts("http", 80), end("10.42.0.9", "", ptr.To(false))),
		clusterService("portless", []string{"None"}),
		endpoints("portless-1", "portless", discoveryv1.AddressTypeIPv4, nil, end("10.42.0.11", "", nil)),
		externalService("alias", "web.default.svc.cluster.local"),
		externalService("dangling", "gone.default.svc.cluster.local"),
		externalService("loop", "loop.default.svc.cluster.local."),
		externalService("ring-a", "ring-b.default.svc.cluster.local"),
		externalService("ring-b", "ring-a.default.svc.cluster.local"),
		externalService("number", "192.0.2.1"),
	}
}

// start returns a server that knows the objects.
func start(t testing.TB, cfg dns.Config, objects ...runtime.Object) (*dns.Server, *fake.Clientset) {
	t.Helper()
	client := fake.NewClientset(objects...)
	factory := informers.NewSharedInformerFactory(client, 0)
	cfg.Informers, cfg.Domain, cfg.Address = factory, "cluster.local", self
	if cfg.ResolvConf == "" {
		cfg.ResolvConf = "/nonexistent/resolv.conf"
	}
	s, err := dns.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	factory.StartWithContext(ctx)
	undo, err := s.Follow(ctx)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		undo()
		cancel()
		factory.Shutdown()
	})
	return s, client
}

func query(name, qtype string) *miekg.Msg {
	q := &miekg.Msg{}
	q.SetQuestion(name, miekg.StringToType[qtype])
	return q
}

func ask(t testing.TB, s *dns.Server, q *miekg.Msg, udp bool) *miekg.Msg {
	t.Helper()
	in, err := q.Pack()
	if err != nil {
		t.Fatal(err)
	}
	out, err := s.Message(t.Context(), in, udp)
	if err != nil {
		t.Fatal(err)
	}
	m := &miekg.Msg{}
	if err := m.Unpack(out); err != nil {
		t.Fatalf("answer %x: %v", out, err)
	}
	if m.Id != q.Id || !m.Response || m.RecursionDesired != q.RecursionDesired {
		t.Errorf("header %+v does not belong to question %+v", m.MsgHdr, q.MsgHdr)
	}
	return m
}

// lines renders records sorted, with single spaces.
func lines(list []miekg.RR) []string {
	var out []string
	for _, rr := range list {
		if rr.Header().Rrtype != miekg.TypeOPT {
			out = append(out, strings.Join(strings.Fields(rr.String()), " "))
		}
	}
	slices.Sort(out)
	return out
}

func TestClusterNames(t *testing.T) {
	t.Parallel()
	s, _ := start(t, dns.Config{}, fixture()...)
	const (
		ok       = "NOERROR"
		nxdomain = "NXDOMAIN"
		z        = ".svc.cluster.local. "
	)
	for _, c := range []struct {
		name, qtype, rcode string
		answer, extra      []string
	}{
		// §2.2 schema version
		{"dns-version.cluster.local.", "TXT", ok, []string{`dns-version.cluster.local. 28800 IN TXT "1.1.0"`}, nil},
		{"dns-version.cluster.local.", "A", ok, nil, nil},
		{"x.dns-version.cluster.local.", "TXT", nxdomain, nil, nil},
		// §2.3 Services with a cluster IP
		{"web.default.svc.cluster.local.", "A", ok, []string{"web.default" + z + "5 IN A 10.43.0.20"}, nil},
		{"WEB.Default.svc.cluster.LOCAL.", "A", ok, []string{"WEB.Default.svc.cluster.LOCAL. 5 IN A 10.43.0.20"}, nil},
		{"web.default.svc.cluster.local.", "AAAA", ok, nil, nil},
		{"web.default.svc.cluster.local.", "MX", ok, nil, nil},
		{"web.default.svc.cluster.local.", "TXT", ok, nil, nil},
		{"web.default.svc.cluster.local.", "CNAME", ok, nil, nil},
		{"web.default.svc.cluster.local.", "ANY", ok, []string{`web.default.svc.cluster.local. 5 IN HINFO "RFC8482" ""`}, nil},
		{"dual.default.svc.cluster.local.", "AAAA", ok, []string{"dual.default" + z + "5 IN AAAA fd00::21"}, nil},
		{"gone.default.svc.cluster.local.", "A", nxdomain, nil, nil},
		{"gone.default.svc.cluster.local.", "ANY", nxdomain, nil, nil},
		{"web.other.svc.cluster.local.", "A", nxdomain, nil, nil},
		{"_http._tcp.web.default.svc.cluster.local.", "SRV", ok,
			[]string{"_http._tcp.web.default" + z + "5 IN SRV 0 100 80 web.default.svc.cluster.local."},
			[]string{"web.default" + z + "5 IN A 10.43.0.20"}},
		{"_HTTP._tcp.web.default.svc.cluster.local.", "SRV", ok,
			[]string{"_HTTP._tcp.web.default" + z + "5 IN SRV 0 100 80 web.default.svc.cluster.local."},
			[]string{"web.default" + z + "5 IN A 10.43.0.20"}},
		{"_dns._udp.resolver.default.svc.cluster.local.", "SRV", ok,
			[]string{"_dns._udp.resolver.default" + z + "5 IN SRV 0 100 53 resolver.default.svc.cluster.local."},
			[]string{"resolver.default" + z + "5 IN A 10.43.0.22"}},
		{"_dns._tcp.resolver.default.svc.cluster.local.", "SRV", nxdomain, nil, nil},
		{"_http._tcp.web.default.svc.cluster.local.", "A", ok, []string{"_http._tcp.web.default" + z + "5 IN A 10.43.0.20"}, nil},
		{"web.default.svc.cluster.local.", "SRV", ok, []string{
			"web.default" + z + "5 IN SRV 0 50 80 web.default.svc.cluster.local.",
			"web.default" + z + "5 IN SRV 0 50 9090 web.default.svc.cluster.local.",
		}, []string{"web.default" + z + "5 IN A 10.43.0.20"}},
		{"10-42-0-7.web.default.svc.cluster.local.", "A", ok, []string{"10-42-0-7.web.default" + z + "5 IN A 10.42.0.7"}, nil},
		{"a.b.c.web.default.svc.cluster.local.", "A", nxdomain, nil, nil},
		// §2.4 headless Services
		{"headless.default.svc.cluster.local.", "A", ok, []string{"headless.default" + z + "5 IN A 10.42.0.3", "headless.default" + z + "5 IN A 10.42.0.4"}, nil},
		{"headless.default.svc.cluster.local.", "AAAA", ok, []string{"headless.default" + z + "5 IN AAAA fd01::3"}, nil},
		{"pet-0.headless.default.svc.cluster.local.", "A", ok, []string{"pet-0.headless.default" + z + "5 IN A 10.42.0.3"}, nil},
		{"PET-0.headless.default.svc.cluster.local.", "AAAA", ok, []string{"PET-0.headless.default" + z + "5 IN AAAA fd01::3"}, nil},
		{"10-42-0-4.headless.default.svc.cluster.local.", "A", ok, []string{"10-42-0-4.headless.default" + z + "5 IN A 10.42.0.4"}, nil},
		{"pet-2.headless.default.svc.cluster.local.", "A", nxdomain, nil, nil}, // not ready
		{"_http._tcp.headless.default.svc.cluster.local.", "SRV", ok, []string{
			"_http._tcp.headless.default" + z + "5 IN SRV 0 33 8080 10-42-0-4.headless.default.svc.cluster.local.",
			"_http._tcp.headless.default" + z + "5 IN SRV 0 33 8080 pet-0.headless.default.svc.cluster.local.",
		}, []string{
			"10-42-0-4.headless.default" + z + "5 IN A 10.42.0.4",
			"pet-0.headless.default" + z + "5 IN A 10.42.0.3",
			"pet-0.headless.default" + z + "5 IN AAAA fd01::3",
		}},
		{"_https._tcp.headless.default.svc.cluster.local.", "SRV", nxdomain, nil, nil},
		{"empty.default.svc.cluster.local.", "A", nxdomain, nil, nil},
		{"portless.default.svc.cluster.local.", "A", ok, []string{"portless.default" + z + "5 IN A 10.42.0.11"}, nil},
		{"portless.default.svc.cluster.local.", "SRV", ok, nil, nil},
		// §2.3.3 and §2.4.3 reverse lookups
		{"20.0.43.10.in-addr.arpa.", "PTR", ok, []string{"20.0.43.10.in-addr.arpa. 5 IN PTR web.default.svc.cluster.local."}, nil},
		{"3.0.42.10.in-addr.arpa.", "PTR", ok, []string{"3.0.42.10.in-addr.arpa. 5 IN PTR pet-0.headless.default.svc.cluster.local."}, nil},
		{"7.0.42.10.IN-addr.arpa.", "PTR", ok, []string{"7.0.42.10.IN-addr.arpa. 5 IN PTR 10-42-0-7.web.default.svc.cluster.local."}, nil},
		{reverse6("fd00::21"), "PTR", ok, []string{reverse6("fd00::21") + " 5 IN PTR dual.default.svc.cluster.local."}, nil},
		// §2.5 ExternalName
		{"alias.default.svc.cluster.local.", "CNAME", ok, []string{"alias.default" + z + "5 IN CNAME web.default.svc.cluster.local."}, nil},
		{"Alias.default.svc.cluster.local.", "A", ok, []string{
			"Alias.default" + z + "5 IN CNAME web.default.svc.cluster.local.",
			"web.default" + z + "5 IN A 10.43.0.20",
		}, nil},
		{"alias.default.svc.cluster.local.", "SRV", ok, nil, nil},
		{"pod.alias.default.svc.cluster.local.", "A", nxdomain, nil, nil},
		{"dangling.default.svc.cluster.local.", "A", nxdomain, []string{"dangling.default" + z + "5 IN CNAME gone.default.svc.cluster.local."}, nil},
		{"loop.default.svc.cluster.local.", "A", ok, nil, nil},
		{"number.default.svc.cluster.local.", "A", nxdomain, nil, nil},
		// §2.6 pods
		{"10-42-0-3.default.pod.cluster.local.", "A", ok, []string{"10-42-0-3.default.pod.cluster.local. 5 IN A 10.42.0.3"}, nil},
		{"10-42-0-3.default.pod.cluster.local.", "AAAA", ok, nil, nil},
		{"fd01--3.default.pod.cluster.local.", "AAAA", ok, []string{"fd01--3.default.pod.cluster.local. 5 IN AAAA fd01::3"}, nil},
		{"10-42-0-300.default.pod.cluster.local.", "A", nxdomain, nil, nil},
		{"web.default.pod.cluster.local.", "A", nxdomain, nil, nil},
		// the zone itself and what is between
		{"cluster.local.", "SOA", ok, nil, nil},
		{"cluster.local.", "A", ok, nil, nil},
		{"cluster.local.", "NS", ok, []string{"cluster.local. 5 IN NS ns.dns.cluster.local."}, []string{"ns.dns.cluster.local. 5 IN A 10.43.0.10"}},
		{"ns.dns.cluster.local.", "A", ok, []string{"ns.dns.cluster.local. 5 IN A 10.43.0.10"}, nil},
		{"svc.cluster.local.", "A", ok, nil, nil},
		{"pod.cluster.local.", "A", ok, nil, nil},
		{"default.svc.cluster.local.", "A", ok, nil, nil},
		{"other.svc.cluster.local.", "A", nxdomain, nil, nil},
		{"web.default.cluster.local.", "A", nxdomain, nil, nil},
		{`web\.default.svc.cluster.local.`, "A", nxdomain, nil, nil},
	} {
		t.Run(c.qtype+" "+c.name, func(t *testing.T) {
			t.Parallel()
			m := ask(t, s, query(c.name, c.qtype), false)
			if got := miekg.RcodeToString[m.Rcode]; got != c.rcode {
				t.Errorf("rcode %s, want %s", got, c.rcode)
			}
			if !m.Authoritative || !m.RecursionAvailable {
				t.Error("the answer lacks AA or RA")
			}
			if m.Question[0].Name != c.name {
				t.Errorf("question %q, want it as asked", m.Question[0].Name)
			}
			if c.qtype == "SOA" {
				if len(m.Answer) != 1 || m.Answer[0].(*miekg.SOA).Minttl != 5 {
					t.Errorf("answer %v", m.Answer)
				}
				return
			}
			if got := lines(m.Answer); !slices.Equal(got, c.answer) {
				t.Errorf("answer\n %s\nwant\n %s", strings.Join(got, "\n "), strings.Join(c.answer, "\n "))
			}
			if got := lines(m.Extra); !slices.Equal(got, c.extra) {
				t.Errorf("additional\n %s\nwant\n %s", strings.Join(got, "\n "), strings.Join(c.extra, "\n "))
			}
			negative := len(c.answer) == 0 || c.rcode != ok
			if soa := len(m.Ns) == 1 && m.Ns[0].Header().Rrtype == miekg.TypeSOA && m.Ns[0].Header().Ttl == 5; soa != negative {
				t.Errorf("authority %v, negative %v", m.Ns, negative)
			}
		})
	}
	t.Run("aliases in a ring end", func(t *testing.T) {
		t.Parallel()
		if m := ask(t, s, query("ring-a.default.svc.cluster.local.", "A"), false); len(m.Answer) != 8 || m.Rcode != miekg.RcodeSuccess {
			t.Errorf("answer %v", m)
		}
	})
}

func reverse6(a string) string {
	name, err := miekg.ReverseAddr(a)
	if err != nil {
		panic(err)
	}
	return name
}

// TestNamespaces: with an informer of namespaces, names in others do not exist.
func TestNamespaces(t *testing.T) {
	t.Parallel()
	client := fake.NewClientset(&v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "bare"}})
	factory := informers.NewSharedInformerFactory(client, 0)
	s, err := dns.New(dns.Config{Informers: factory, Namespaces: factory.Core().V1().Namespaces(), Domain: "cluster.local", Address: self})
	if err != nil {
		t.Fatal(err)
	}
	factory.StartWithContext(t.Context())
	undo, err := s.Follow(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer undo()
	for name, rcode := range map[string]int{
		"bare.svc.cluster.local.":           miekg.RcodeSuccess,
		"other.svc.cluster.local.":          miekg.RcodeNameError,
		"10-0-0-1.bare.pod.cluster.local.":  miekg.RcodeSuccess,
		"10-0-0-1.other.pod.cluster.local.": miekg.RcodeNameError,
	} {
		if m := ask(t, s, query(name, "A"), true); m.Rcode != rcode {
			t.Errorf("%s: %s", name, miekg.RcodeToString[m.Rcode])
		}
	}
}

// TestEvents: answers follow the objects.
func TestEvents(t *testing.T) {
	t.Parallel()
	synctest.Test(t, testEvents)
}

func testEvents(t *testing.T) {
	s, client := start(t, dns.Config{})
	ctx := t.Context()
	slices1 := client.DiscoveryV1().EndpointSlices("default")
	services := client.CoreV1().Services("default")
	check := func(what, name, qtype string, want ...string) {
		t.Helper()
		synctest.Wait() // until the informers have nothing more to say
		var got []string
		for _, rr := range ask(t, s, query(name, qtype), false).Answer {
			switch rr := rr.(type) {
			case *miekg.A:
				got = append(got, rr.A.String())
			case *miekg.PTR:
				got = append(got, rr.Ptr)
			}
		}
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", what, got, want)
		}
	}
	must := func(_ any, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	const name = "db.default.svc.cluster.local."
	db := clusterService("db", []string{"None"}, port("sql", v1.ProtocolTCP, 5432))
	sl := endpoints("db-1", "db", discoveryv1.AddressTypeIPv4, slicePorts("sql", 5432), end("10.42.0.1", "", nil))
	must(slices1.Create(ctx, sl, metav1.CreateOptions{}))
	must(services.Create(ctx, db, metav1.CreateOptions{}))
	check("a slice before its Service", name, "A", "10.42.0.1")
	check("reverse", "1.0.42.10.in-addr.arpa.", "PTR", "10-42-0-1.db.default.svc.cluster.local.")
	sl = endpoints("db-1", "db", discoveryv1.AddressTypeIPv4, slicePorts("sql", 5432), end("10.42.0.2", "", nil), end("10.42.0.3", "", ptr.To(false)))
	must(slices1.Update(ctx, sl, metav1.UpdateOptions{}))
	check("another endpoint", name, "A", "10.42.0.2")
	check("reverse of the old endpoint", "1.0.42.10.in-addr.arpa.", "PTR")
	check("reverse of the new endpoint", "2.0.42.10.in-addr.arpa.", "PTR", "10-42-0-2.db.default.svc.cluster.local.")
	must(slices1.Create(ctx, endpoints("db-2", "db", discoveryv1.AddressTypeIPv4, slicePorts("sql", 5432), end("10.42.0.2", "", nil), end("10.42.0.4", "", nil)), metav1.CreateOptions{}))
	check("a second slice", name, "A", "10.42.0.2", "10.42.0.4")
	moved := endpoints("db-2", "other", discoveryv1.AddressTypeIPv4, slicePorts("sql", 5432), end("10.42.0.4", "", nil))
	must(slices1.Update(ctx, moved, metav1.UpdateOptions{}))
	check("a slice of another Service", name, "A", "10.42.0.2")
	must(services.Delete(ctx, "db", metav1.DeleteOptions{}), nil)
	check("no Service", name, "A")
	must(services.Create(ctx, clusterService("db", []string{"10.43.0.30"}), metav1.CreateOptions{}))
	check("with a cluster IP", name, "A", "10.43.0.30")
	check("reverse of the cluster IP", "30.0.43.10.in-addr.arpa.", "PTR", name)
	must(services.Update(ctx, clusterService("db", []string{"10.43.0.31"}), metav1.UpdateOptions{}))
	check("with another cluster IP", name, "A", "10.43.0.31")
	check("reverse of the old cluster IP", "30.0.43.10.in-addr.arpa.", "PTR")
}
