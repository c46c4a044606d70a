package gateway

import (
	"cmp"
	"slices"
	"strings"

	"github.com/periplus/periplus/l7"
)

// A Port is one that the gateway listens at.
type Port struct {
	Number int
	// TLS terminates TLS on it.
	TLS   bool
	hosts map[string]*Host
}

// A Host is what one domain wants of a port: "a.example", "*.example" or "*".
type Host struct {
	Domain string
	// Routes in the order in which they are tried; Sort brings those with a Rank in order.
	Routes []Ranked
	// Certificates for the domain, on a port with TLS; the first is used.
	Certificates []*Certificate
}

// A Ranked route knows its place among those of its host.
type Ranked struct {
	*l7.Route
	// Rank orders routes: the smaller comes first, element by element.
	Rank []int
}

// Port returns a port, made if nobody has asked for it before. A port has TLS if the
// first who asks for it says so; false: it is the other way round already.
func (b *Build) Port(number int, tls bool) (*Port, bool) {
	p := b.ports[number]
	if p == nil {
		p = &Port{Number: number, TLS: tls, hosts: map[string]*Host{}}
		b.ports[number] = p
	}
	return p, p.TLS == tls
}

// Host returns a domain of a port, made if nobody has asked for it before.
func (p *Port) Host(domain string) *Host {
	domain = strings.ToLower(domain)
	if domain == "" {
		domain = "*"
	}
	h := p.hosts[domain]
	if h == nil {
		h = &Host{Domain: domain}
		p.hosts[domain] = h
	}
	return h
}

// Has reports whether somebody has asked for a domain.
func (p *Port) Has(domain string) bool { return p.hosts[strings.ToLower(domain)] != nil }

// Add appends a route.
func (h *Host) Add(r *l7.Route, rank ...int) {
	h.Routes = append(h.Routes, Ranked{r, rank})
}

// virtualHosts returns the hosts in a stable order with their routes sorted.
func (p *Port) virtualHosts() []*l7.VirtualHost {
	domains := make([]string, 0, len(p.hosts))
	for d := range p.hosts {
		domains = append(domains, d)
	}
	slices.Sort(domains)
	out := make([]*l7.VirtualHost, 0, len(domains))
	for _, d := range domains {
		h := p.hosts[d]
		slices.SortStableFunc(h.Routes, func(a, b Ranked) int { return slices.CompareFunc(a.Rank, b.Rank, cmp.Compare[int]) })
		v := &l7.VirtualHost{Name: d, Domains: []string{d}}
		for _, r := range h.Routes {
			v.Routes = append(v.Routes, r.Route)
		}
		out = append(out, v)
	}
	return out
}
