package dns

import (
	"net/netip"
	"strconv"
	"strings"
	"sync/atomic"

	miekg "github.com/miekg/dns"
	corelisters "k8s.io/client-go/listers/core/v1"
)

// schemaVersion is the version of the specification that is followed.
const schemaVersion = "1.1.0"

// A zone knows the names of the cluster domain:
//
//	cluster.local                                   SOA, NS
//	ns.dns.cluster.local                            our own address
//	dns-version.cluster.local                       TXT
//	web.default.svc.cluster.local                   a Service
//	web-0.web.default.svc.cluster.local             one of its endpoints
//	_http._tcp.web.default.svc.cluster.local        one of its ports
//	10-42-0-3.default.pod.cluster.local             a pod
//
// and answers as CoreDNS's kubernetes plug-in does with "pods insecure".
type zone struct {
	name       string // "cluster.local."
	suffix     string // ".cluster.local."
	index      *index
	namespaces corelisters.NamespaceLister // nil: see Config.Namespaces

	apex, self, version *records
	lastSOA             atomic.Pointer[miekg.SOA]
}

// nothing is what names have that exist without records.
var nothing = &records{}

func newZone(name string, addr netip.Addr, x *index, namespaces corelisters.NamespaceLister) *zone {
	ns := "ns.dns." + name
	z := &zone{name: name, suffix: "." + name, index: x, namespaces: namespaces, self: &records{}}
	z.self.addAddress(ns, addr)
	z.apex = &records{
		more:  []miekg.RR{&miekg.NS{Hdr: header(name, miekg.TypeNS), Ns: ns}},
		extra: []miekg.RR{address(ns, addr)},
	}
	txt := &miekg.TXT{Hdr: header("dns-version."+name, miekg.TypeTXT), Txt: []string{schemaVersion}}
	txt.Hdr.Ttl = 28800
	z.version = &records{more: []miekg.RR{txt}}
	return z
}

// contains says whether a name, in lower case, is in the zone.
func (z *zone) contains(name string) bool {
	return name == z.name || strings.HasSuffix(name, z.suffix) && !strings.HasSuffix(name, `\`+z.suffix)
}

// soa is the record that tells how long a negative answer holds.
func (z *zone) soa() miekg.RR {
	serial := z.index.serial.Load()
	if last := z.lastSOA.Load(); last != nil && last.Serial == serial {
		return last
	}
	soa := &miekg.SOA{
		Hdr: header(z.name, miekg.TypeSOA), Ns: "ns.dns." + z.name, Mbox: "hostmaster." + z.name,
		Serial: serial, Refresh: 7200, Retry: 1800, Expire: 86400, Minttl: ttl,
	}
	z.lastSOA.Store(soa)
	return soa
}

// lookup returns the records of a name in the zone, in lower case; nil when
// there is no such name.
func (z *zone) lookup(name string) *records {
	if name == z.name {
		return z.apex
	}
	rest, kind := cutLast(strings.TrimSuffix(name, z.suffix))
	if strings.Contains(rest, `\`) {
		return nil // no Service and no pod is called so
	}
	switch kind {
	case "svc":
		return z.service(rest)
	case "pod":
		return z.pod(rest)
	case "dns-version":
		if rest == "" {
			return z.version
		}
	case "dns":
		switch rest {
		case "ns":
			return z.self
		case "":
			return nothing
		}
	}
	return nil
}

// service looks up what stands before ".svc.cluster.local.".
func (z *zone) service(rest string) *records {
	before, namespace := cutLast(rest)
	if before == "" {
		return z.bare(namespace)
	}
	name := before
	if i := strings.LastIndexByte(before, '.'); i >= 0 {
		name = before[i+1:]
	}
	v := z.index.get(rest[len(before)-len(name):])
	if v == nil {
		return nil
	}
	if len(name) == len(before) {
		return v.service()
	}
	left := before[:len(before)-len(name)-1]
	port, protocol, two := strings.Cut(left, ".")
	if !two {
		return v.hosts()[left]
	}
	if strings.Contains(protocol, ".") {
		return nil
	}
	return v.ports()[portName{strings.TrimPrefix(port, "_"), strings.TrimPrefix(protocol, "_")}]
}

// pod looks up what stands before ".pod.cluster.local.": the name says the address.
func (z *zone) pod(rest string) *records {
	before, namespace := cutLast(rest)
	if before == "" {
		return z.bare(namespace)
	}
	if strings.Contains(before, ".") || z.namespaces != nil && !z.exists(namespace) {
		return nil
	}
	a, ok := undashed(before)
	if !ok {
		return nil
	}
	r := &records{}
	r.addAddress(before+"."+namespace+".pod."+z.name, a)
	return r
}

// bare is the name of a namespace, or of all of them.
func (z *zone) bare(namespace string) *records {
	if namespace == "" || z.exists(namespace) {
		return nothing
	}
	return nil
}

func (z *zone) exists(namespace string) bool {
	if z.namespaces == nil {
		return z.index.hasNamespace(namespace)
	}
	_, err := z.namespaces.Get(namespace)
	return err == nil
}

// reverse returns the PTR records of a name under in-addr.arpa or ip6.arpa, nil
// when the address is none of the cluster's.
func (z *zone) reverse(name string) []miekg.RR {
	a, ok := reversed(name)
	if !ok {
		return nil
	}
	var out []miekg.RR
	for _, target := range z.index.names(a) {
		out = append(out, &miekg.PTR{Hdr: header(name, miekg.TypePTR), Ptr: target})
	}
	return out
}

// cutLast splits off the last label.
func cutLast(name string) (before, last string) {
	i := strings.LastIndexByte(name, '.')
	if i < 0 {
		return "", name
	}
	return name[:i], name[i+1:]
}

// undashed reads the address in a pod's name: 10-42-0-3, fd00--3.
func undashed(s string) (netip.Addr, bool) {
	if len(s) > 39 {
		return netip.Addr{}, false
	}
	sep := ":"
	if strings.Count(s, "-") == 3 && !strings.Contains(s, "--") {
		sep = "."
	}
	a, err := netip.ParseAddr(strings.ReplaceAll(s, "-", sep))
	return a.Unmap(), err == nil
}

// reversed reads the address in the name of a reverse lookup.
func reversed(name string) (netip.Addr, bool) {
	if s, ok := strings.CutSuffix(name, ".in-addr.arpa."); ok {
		var b [4]byte
		for i := range b {
			var label string
			s, label = cutFirstFromEnd(s, i == len(b)-1)
			n, err := strconv.ParseUint(label, 10, 8)
			if err != nil {
				return netip.Addr{}, false
			}
			b[i] = byte(n)
		}
		return netip.AddrFrom4(b), true
	}
	s, ok := strings.CutSuffix(name, ".ip6.arpa.")
	if !ok || len(s) != 63 {
		return netip.Addr{}, false
	}
	var b [16]byte
	for i := range 32 { // from the end: nibble, dot, nibble …
		at := len(s) - 1 - 2*i
		if at > 0 && s[at-1] != '.' {
			return netip.Addr{}, false
		}
		n, err := strconv.ParseUint(s[at:at+1], 16, 4)
		if err != nil {
			return netip.Addr{}, false
		}
		b[i/2] = b[i/2]<<4 | byte(n)
	}
	return netip.AddrFrom16(b), true
}

// cutFirstFromEnd takes the last label off, or all of what is left.
func cutFirstFromEnd(s string, all bool) (rest, label string) {
	if all {
		return "", s
	}
	return cutLast(s)
}
