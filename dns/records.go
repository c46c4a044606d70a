package dns

import (
	"cmp"
	"iter"
	"net/netip"
	"slices"
	"strings"
	"sync"

	miekg "github.com/miekg/dns"
	v1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
)

// ttl of the cluster's records in seconds: how long a pod may go on asking for
// an endpoint that has gone.
const ttl = 5

// records are those of one name, all of them immutable and owned by the
// canonical name.
type records struct {
	a, aaaa []miekg.RR
	cname   *miekg.CNAME // alone
	srv     []miekg.RR
	extra   []miekg.RR // addresses of the targets of srv and more
	more    []miekg.RR // of other types, all of one
}

// of returns the records of a type.
func (r *records) of(qtype uint16) []miekg.RR {
	switch qtype {
	case miekg.TypeA:
		return r.a
	case miekg.TypeAAAA:
		return r.aaaa
	case miekg.TypeSRV:
		return r.srv
	}
	if len(r.more) > 0 && r.more[0].Header().Rrtype == qtype {
		return r.more
	}
	return nil
}

// A view is all that is asked about one Service, from one moment. Each part is
// made when it is first asked for: few Services are ever asked for SRV records
// or for single endpoints.
type view struct {
	fqdn string // "web.default.svc.cluster.local."
	// service has the records of the Service itself, nil when its name does not
	// exist: headless without ready endpoints, or an ExternalName that is an address.
	service func() *records
	// ports has those of _port._protocol, in lower case without the underscores.
	ports func() map[portName]*records
	// hosts has those of single endpoints by host name.
	hosts func() map[string]*records
}

type portName struct{ port, protocol string }

// endpoint is one ready address.
type endpoint struct {
	host  string
	addr  netip.Addr
	ports []discoveryv1.EndpointPort
}

func newView(zone string, o *v1.Service, ends []*discoveryv1.EndpointSlice) *view {
	v := &view{fqdn: o.Name + "." + o.Namespace + ".svc." + zone}
	slices.SortFunc(ends, func(a, b *discoveryv1.EndpointSlice) int { return cmp.Compare(a.Name, b.Name) })
	switch {
	case o.Spec.Type == v1.ServiceTypeExternalName:
		v.service = sync.OnceValue(func() *records { return externalName(v.fqdn, o.Spec.ExternalName) })
		v.ports = func() map[portName]*records { return nil }
		v.hosts = func() map[string]*records { return nil }
		return v
	case o.Spec.ClusterIP == v1.ClusterIPNone:
		v.service = sync.OnceValue(func() *records { return headless(v.fqdn, v.fqdn, readyIn(ends), anyPort) })
		v.ports = sync.OnceValue(func() map[portName]*records { return headlessPorts(v.fqdn, readyIn(ends)) })
	default:
		v.service = sync.OnceValue(func() *records { return clustered(v.fqdn, v.fqdn, o, o.Spec.Ports) })
		v.ports = sync.OnceValue(func() map[portName]*records { return clusteredPorts(v.fqdn, o) })
	}
	v.hosts = sync.OnceValue(func() map[string]*records { return hosts(v.fqdn, readyIn(ends)) })
	return v
}

// externalName has the alias of an ExternalName Service. One that is an address
// has no name to point to (CoreDNS answers NXDOMAIN as well).
func externalName(owner, target string) *records {
	if _, err := netip.ParseAddr(target); err == nil || target == "" {
		return nil
	}
	target = miekg.CanonicalName(target)
	if _, ok := miekg.IsDomainName(target); !ok {
		return nil
	}
	return &records{cname: &miekg.CNAME{Hdr: header(owner, miekg.TypeCNAME), Target: target}}
}

// clustered has the records of a Service with cluster IPs, for some of its ports.
func clustered(owner, fqdn string, o *v1.Service, ports []v1.ServicePort) *records {
	r := &records{}
	n := 0
	for a := range clusterIPs(o) {
		n++
		r.addAddress(owner, a)
		r.extra = append(r.extra, address(fqdn, a))
	}
	if n == 0 {
		return nil // no address yet
	}
	for _, p := range ports {
		r.addSRV(owner, fqdn, p.Port, n*len(ports))
	}
	return r
}

func clusteredPorts(fqdn string, o *v1.Service) map[portName]*records {
	out := map[portName]*records{}
	for _, p := range o.Spec.Ports {
		if p.Name == "" {
			continue
		}
		name := portName{strings.ToLower(p.Name), strings.ToLower(string(p.Protocol))}
		owner := "_" + name.port + "._" + name.protocol + "." + fqdn
		if r := clustered(owner, fqdn, o, []v1.ServicePort{p}); r != nil {
			out[name] = r
		}
	}
	return out
}

// anyPort as a filter takes every port.
var anyPort = portName{}

func (n portName) matches(p discoveryv1.EndpointPort) bool {
	return n == anyPort || n == nameOf(p)
}

func nameOf(p discoveryv1.EndpointPort) portName {
	n := portName{protocol: "tcp"}
	if p.Name != nil {
		n.port = strings.ToLower(*p.Name)
	}
	if p.Protocol != nil {
		n.protocol = strings.ToLower(string(*p.Protocol))
	}
	return n
}

// headless has the records of endpoints that have a port, nil when there are none.
// An endpoint without any ports still has its address.
func headless(owner, fqdn string, ends []endpoint, port portName) *records {
	r := &records{}
	seen := make(map[netip.Addr]bool, len(ends))
	targets := map[endpointTarget]bool{}
	n := 0
	for _, e := range ends {
		for _, p := range e.ports {
			if port.matches(p) {
				n++
			}
		}
	}
	for _, e := range ends {
		target, matched := "", port == anyPort
		for _, p := range e.ports {
			if !port.matches(p) {
				continue
			}
			matched = true
			if p.Port == nil {
				continue
			}
			if target == "" {
				target = e.host + "." + fqdn
			}
			if t := (endpointTarget{target, *p.Port, netip.Addr{}}); !targets[t] {
				targets[t] = true
				r.addSRV(owner, target, *p.Port, n)
			}
		}
		if !matched {
			continue
		}
		if !seen[e.addr] {
			seen[e.addr] = true
			r.addAddress(owner, e.addr)
		}
		if t := (endpointTarget{target, 0, e.addr}); target != "" && !targets[t] {
			targets[t] = true
			r.extra = append(r.extra, address(target, e.addr))
		}
	}
	if len(r.a)+len(r.aaaa) == 0 {
		return nil
	}
	return r
}

// endpointTarget tells SRV records and addresses of targets apart.
type endpointTarget struct {
	name string
	port int32
	addr netip.Addr
}

func headlessPorts(fqdn string, ends []endpoint) map[portName]*records {
	out := map[portName]*records{}
	for _, e := range ends {
		for _, p := range e.ports {
			name := nameOf(p)
			if _, ok := out[name]; ok || name.port == "" {
				continue
			}
			out[name] = headless("_"+name.port+"._"+name.protocol+"."+fqdn, fqdn, ends, name)
		}
	}
	return out
}

func hosts(fqdn string, ends []endpoint) map[string]*records {
	byHost := map[string][]endpoint{}
	for _, e := range ends {
		byHost[e.host] = append(byHost[e.host], e)
	}
	out := make(map[string]*records, len(byHost))
	for host, list := range byHost {
		out[host] = headless(host+"."+fqdn, fqdn, list, anyPort)
	}
	return out
}

// addAddress adds an A or AAAA record.
func (r *records) addAddress(owner string, a netip.Addr) {
	if a.Is4() {
		r.a = append(r.a, address(owner, a))
	} else {
		r.aaaa = append(r.aaaa, address(owner, a))
	}
}

// addSRV adds one of n records of the same priority; their weights share 100.
func (r *records) addSRV(owner, target string, port int32, n int) {
	r.srv = append(r.srv, &miekg.SRV{
		Hdr: header(owner, miekg.TypeSRV), Weight: uint16(max(1, 100/n)), Port: uint16(port), Target: target,
	})
}

func address(owner string, a netip.Addr) miekg.RR {
	if a.Is4() {
		return &miekg.A{Hdr: header(owner, miekg.TypeA), A: a.AsSlice()}
	}
	return &miekg.AAAA{Hdr: header(owner, miekg.TypeAAAA), AAAA: a.AsSlice()}
}

func header(owner string, rrtype uint16) miekg.RR_Header {
	return miekg.RR_Header{Name: owner, Rrtype: rrtype, Class: miekg.ClassINET, Ttl: ttl}
}

// clusterIPs yields the cluster IPs of a Service; headless ones and ExternalNames have none.
func clusterIPs(o *v1.Service) iter.Seq[netip.Addr] {
	return func(yield func(netip.Addr) bool) {
		if o.Spec.Type == v1.ServiceTypeExternalName {
			return
		}
		list := o.Spec.ClusterIPs
		if len(list) == 0 {
			list = []string{o.Spec.ClusterIP}
		}
		for _, text := range list {
			if a, err := netip.ParseAddr(text); err == nil && !yield(a.Unmap()) {
				return
			}
		}
	}
}

// addresses yields all addresses of a slice, ready or not.
func addresses(o *discoveryv1.EndpointSlice) iter.Seq[netip.Addr] {
	return func(yield func(netip.Addr) bool) {
		for i := range o.Endpoints {
			for _, text := range o.Endpoints[i].Addresses {
				if a, err := netip.ParseAddr(text); err == nil && !yield(a.Unmap()) {
					return
				}
			}
		}
	}
}

// readyEndpoints yields what is ready in a slice. Services with
// publishNotReadyAddresses have all of their endpoints marked ready by the
// controller that writes the slices.
func readyEndpoints(o *discoveryv1.EndpointSlice) iter.Seq[endpoint] {
	return func(yield func(endpoint) bool) {
		for i := range o.Endpoints {
			e := &o.Endpoints[i]
			if e.Conditions.Ready != nil && !*e.Conditions.Ready {
				continue
			}
			for _, text := range e.Addresses {
				a, err := netip.ParseAddr(text)
				if err != nil {
					continue // a slice of names
				}
				a = a.Unmap()
				host := ""
				if e.Hostname != nil {
					host = strings.ToLower(*e.Hostname)
				}
				if host == "" {
					host = dashed(a)
				}
				if !yield(endpoint{host: host, addr: a, ports: o.Ports}) {
					return
				}
			}
		}
	}
}

func readyIn(ends []*discoveryv1.EndpointSlice) []endpoint {
	var out []endpoint
	for _, o := range ends {
		out = slices.AppendSeq(out, readyEndpoints(o))
	}
	return out
}

// dashed is the host name of an endpoint that has none: 10-42-0-3, fd00--3.
func dashed(a netip.Addr) string {
	if a.Is4() {
		return strings.ReplaceAll(a.String(), ".", "-")
	}
	return strings.ReplaceAll(a.String(), ":", "-")
}
