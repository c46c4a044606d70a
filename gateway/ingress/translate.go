package ingress

import (
	"fmt"
	"slices"
	"strings"

	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/periplus/periplus/gateway"
	"github.com/periplus/periplus/l7"
)

// A site is what all Ingresses want of one host.
type site struct {
	regex bool // paths are regular expressions
	tls   bool // some Ingress has TLS for it
	// certificate: the first Ingress that has one decides.
	certificate *gateway.Certificate
	paths       map[string]*path // by kind and text
	order       []*path
	fallback    *path // of spec.defaultBackend
	aliases     []string
}

// A path is what one Ingress wants of a path, with its canaries.
type path struct {
	owner    *networkingv1.Ingress
	options  *options
	match    l7.PathMatch
	rank     []int
	backend  *networkingv1.IngressBackend
	canaries []*canary
}

// Build implements gateway.Source.
func (s *Source) Build(b *gateway.Build) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.found = map[types.UID][]problem{}
	t := &translation{source: s, build: b, sites: map[string]*site{}, options: map[types.UID]*options{}}
	list := s.ours()
	if len(list) == 0 {
		return
	}
	for _, i := range list {
		b.Object("Ingress", i)
		t.prepare(i)
	}
	for _, i := range list {
		if !t.options[i.UID].canary {
			t.collect(i)
		}
	}
	for _, i := range list {
		if t.options[i.UID].canary {
			t.collectCanary(i)
		}
	}
	t.emit()
}

type translation struct {
	source  *Source
	build   *gateway.Build
	sites   map[string]*site
	options map[types.UID]*options
}

func (t *translation) wrong(i *networkingv1.Ingress) func(reason, message string) {
	return func(reason, message string) {
		t.source.found[i.UID] = append(t.source.found[i.UID], problem{reason, message})
	}
}

func (t *translation) site(host string) *site {
	host = strings.ToLower(host)
	if host == "" {
		host = "*"
	}
	s := t.sites[host]
	if s == nil {
		s = &site{paths: map[string]*path{}}
		t.sites[host] = s
	}
	return s
}

// prepare reads what concerns whole hosts: regular expressions and TLS.
func (t *translation) prepare(i *networkingv1.Ingress) {
	o := t.readOptions(i)
	t.options[i.UID] = o
	hosts := hostsOf(i)
	for _, h := range hosts {
		s := t.site(h)
		s.regex = s.regex || o.regex
		s.aliases = append(s.aliases, o.aliases...)
	}
	for _, tls := range i.Spec.TLS {
		names := tls.Hosts
		if len(names) == 0 {
			names = hosts
		}
		var certificate *gateway.Certificate
		if tls.SecretName != "" {
			var err error
			if certificate, err = t.build.Certificate(i.Namespace, tls.SecretName); err != nil {
				t.wrong(i)("InvalidCertificate", err.Error()+"; the default certificate is used")
			}
		}
		for _, h := range names {
			s := t.site(h)
			s.tls = true
			if s.certificate == nil {
				s.certificate = certificate
			}
		}
	}
}

func hostsOf(i *networkingv1.Ingress) []string {
	var out []string
	for _, r := range i.Spec.Rules {
		out = append(out, r.Host)
	}
	if len(out) == 0 {
		out = append(out, "")
	}
	return out
}

// collect takes the paths of an Ingress; those of older ones stay.
func (t *translation) collect(i *networkingv1.Ingress) {
	o := t.options[i.UID]
	for r := range i.Spec.Rules {
		rule := &i.Spec.Rules[r]
		s := t.site(rule.Host)
		if rule.HTTP != nil {
			for p := range rule.HTTP.Paths {
				hp := &rule.HTTP.Paths[p]
				m, rank, err := match(hp.Path, hp.PathType, s.regex)
				if err != nil {
					t.wrong(i)("InvalidPath", fmt.Sprintf("path %q of host %q: %v", hp.Path, rule.Host, err))
					continue
				}
				key := pathKey(hp.Path, hp.PathType)
				if old := s.paths[key]; old != nil {
					if old.owner.UID != i.UID {
						t.wrong(i)("PathTaken", fmt.Sprintf("path %q of host %q belongs to the older Ingress %s/%s", hp.Path, rule.Host, old.owner.Namespace, old.owner.Name))
					}
					continue
				}
				made := &path{owner: i, options: o, match: m, rank: rank, backend: &hp.Backend}
				s.paths[key] = made
				s.order = append(s.order, made)
			}
		}
		if i.Spec.DefaultBackend != nil && s.fallback == nil {
			s.fallback = &path{owner: i, options: o, rank: []int{rankDefault}, backend: i.Spec.DefaultBackend}
		}
	}
	if len(i.Spec.Rules) == 0 && i.Spec.DefaultBackend != nil {
		if s := t.site(""); s.fallback == nil {
			s.fallback = &path{owner: i, options: o, rank: []int{rankDefault}, backend: i.Spec.DefaultBackend}
		}
	}
}

func pathKey(text string, kind *networkingv1.PathType) string {
	if text == "" {
		text = "/"
	}
	if kind != nil && *kind == networkingv1.PathTypeExact {
		return "=" + text
	}
	return "^" + strings.TrimSuffix(text, "/")
}

// emit makes hosts and routes of what was collected.
func (t *translation) emit() {
	http, ok := t.build.Port(t.build.HTTPPort, false)
	if !ok {
		t.portTaken(t.build.HTTPPort)
		return
	}
	var https *gateway.Port
	for _, s := range t.sites {
		if s.tls {
			if https, ok = t.build.Port(t.build.HTTPSPort, true); !ok {
				t.portTaken(t.build.HTTPSPort)
				https = nil
			}
			break
		}
	}
	for domain, s := range t.sites {
		for _, d := range append([]string{domain}, s.aliases...) {
			if d != domain && t.sites[d] != nil {
				continue // an alias does not take a host away
			}
			t.host(http.Host(d), s, false)
			if https != nil {
				h := https.Host(d)
				if s.certificate != nil {
					h.Certificates = append(h.Certificates, s.certificate)
				}
				t.host(h, s, true)
			}
		}
	}
}

func (t *translation) portTaken(port int) {
	for uid := range t.options {
		t.source.found[uid] = append(t.source.found[uid], problem{"PortConflict", fmt.Sprintf("port %d is used by a Gateway with another protocol", port)})
	}
}

func (t *translation) host(h *gateway.Host, s *site, secure bool) {
	all := s.order
	if s.fallback != nil {
		all = append(slices.Clip(all), s.fallback)
	}
	for _, p := range all {
		for i, r := range t.routes(p, s, secure) {
			if r.Forward != nil {
				r.Filters = append(slices.Clip(r.Filters), t.build.Answers("Ingress", p.owner, h.Domain+" "+p.match.Value)...)
			}
			h.Add(r, append(slices.Clip(p.rank), i)...)
		}
	}
}

// routes makes those of one path: redirects, then canaries, then the path itself.
func (t *translation) routes(p *path, s *site, secure bool) []*l7.Route {
	o := p.options
	name := p.owner.Namespace + "/" + p.owner.Name
	base := func() *l7.Route {
		return &l7.Route{Name: name, Match: l7.RouteMatch{Path: p.match}, Filters: o.filters, Metadata: o.metadata}
	}
	if !secure && (o.forceTLS || s.tls && o.redirectTLS) {
		r := base()
		r.Filters = nil
		r.Redirect = &l7.Redirect{Scheme: "https", Code: 308}
		if t.build.HTTPSPort != 443 {
			r.Redirect.Port = t.build.HTTPSPort
		}
		return []*l7.Route{r}
	}
	if o.redirect != nil {
		r := base()
		r.Direct = o.redirect
		return []*l7.Route{r}
	}
	var out []*l7.Route
	if o.appRoot != "" && (p.match.Kind != l7.PathExact || p.match.Value == "/") {
		r := base()
		r.Match.Path = l7.PathMatch{Kind: l7.PathExact, Value: "/"}
		r.Direct = &l7.Reply{Status: 302, Header: l7.Header{{Name: "Location", Value: o.appRoot}}}
		out = append(out, r)
	}
	main, err := t.forward(p.owner, p.backend, o, p.match.Value)
	if err != nil {
		t.wrong(p.owner)("ServiceNotFound", err.Error())
		r := base()
		r.Direct = unavailable(err)
		return append(out, r)
	}
	r := base()
	r.Forward = main
	if len(p.canaries) == 0 {
		return append(out, r)
	}
	return append(out, t.withCanaries(p, r)...)
}

func unavailable(err error) *l7.Reply {
	return &l7.Reply{Status: 503, Body: "503 Service Temporarily Unavailable", Flag: l7.FlagNoHealthy, Details: err.Error()}
}
