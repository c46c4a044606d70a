package validate

import (
	"net/netip"
	"slices"
	"strconv"
	"strings"

	security "istio.io/api/security/v1beta1"
	typev1beta1 "istio.io/api/type/v1beta1"

	"github.com/periplus/periplus/mesh/config"
)

// PeerAuthentication checks modes of mutual TLS.
func PeerAuthentication(p *config.PeerAuthentication) error {
	var m mistakes
	selector(&m, p.Spec.GetSelector())
	if ports := p.Spec.GetPortLevelMtls(); ports != nil {
		if len(ports) == 0 {
			m.addf("port level mTLS, if defined, must have at least one element")
		}
		if len(p.Spec.GetSelector().GetMatchLabels()) == 0 {
			m.addf("mesh/namespace peer authentication cannot have port level mTLS")
		}
		for n := range ports {
			if n == 0 {
				m.addf("port cannot be 0")
			} else if n > 65535 {
				m.add(port(n))
			}
		}
	}
	return m.err()
}

func selector(m *mistakes, s *typev1beta1.WorkloadSelector) {
	for k, v := range s.GetMatchLabels() {
		switch {
		case k == "":
			m.addf("empty key is not supported in selector: %q", k+"="+v)
		case strings.Contains(k, "*") || strings.Contains(v, "*"):
			m.addf("wildcard is not supported in selector: %q", k+"="+v)
		}
	}
}

// attributes are the keys of conditions.
var attributes = []string{
	"source.ip", "remote.ip", "source.namespace", "source.principal", "source.serviceAccount",
	"request.auth.principal", "request.auth.audiences", "request.auth.presenter",
	"destination.ip", "destination.port", "connection.sni",
}

// AuthorizationPolicy checks who may do what.
func AuthorizationPolicy(a *config.AuthorizationPolicy) error {
	var m mistakes
	s := a.Spec
	selector(&m, s.GetSelector())
	action := s.GetAction()
	switch {
	case action == security.AuthorizationPolicy_CUSTOM:
		if s.GetRules() == nil {
			m.addf("CUSTOM action without `rules` is meaningless as it will never be triggered, add an empty rule `{}` if you want it be triggered for every request")
		}
		if s.GetProvider().GetName() == "" {
			m.addf("`provider.name` must not be empty")
		}
	case s.GetProvider() != nil:
		m.addf("`provider` must not be with non CUSTOM action, found %s", action)
	case action == security.AuthorizationPolicy_DENY && s.GetRules() == nil:
		m.addf("DENY action without `rules` is meaningless as it will never be triggered, add an empty rule `{}` if you want it be triggered for every request")
	}
	for i, r := range s.GetRules() {
		rule(&m, r, i)
	}
	return m.err()
}

func rule(m *mistakes, r *security.Rule, i int) {
	if r.GetFrom() != nil && len(r.GetFrom()) == 0 {
		m.addf("`from` cannot be empty, found at rule %d", i)
	}
	for _, f := range r.GetFrom() {
		s := f.GetSource()
		if s == nil {
			m.addf("`from.source` cannot be nil, found at rule %d", i)
			continue
		}
		lists := [][]string{
			s.GetPrincipals(), s.GetNotPrincipals(), s.GetRequestPrincipals(), s.GetNotRequestPrincipals(), s.GetNamespaces(), s.GetNotNamespaces(),
			s.GetServiceAccounts(), s.GetNotServiceAccounts(), s.GetIpBlocks(), s.GetNotIpBlocks(), s.GetRemoteIpBlocks(), s.GetNotRemoteIpBlocks(),
			s.GetTrustDomains(), s.GetNotTrustDomains(),
		}
		if !slices.ContainsFunc(lists, func(l []string) bool { return len(l) > 0 }) {
			m.addf("`from.source` must have at least one field set, found at rule %d", i)
		}
		for _, l := range [][]string{s.GetIpBlocks(), s.GetNotIpBlocks(), s.GetRemoteIpBlocks(), s.GetNotRemoteIpBlocks()} {
			addresses(m, l)
		}
	}
	for _, t := range r.GetTo() {
		o := t.GetOperation()
		if o == nil {
			m.addf("`to.operation` cannot be nil, found at rule %d", i)
			continue
		}
		lists := [][]string{o.GetHosts(), o.GetNotHosts(), o.GetPorts(), o.GetNotPorts(), o.GetMethods(), o.GetNotMethods(), o.GetPaths(), o.GetNotPaths()}
		if !slices.ContainsFunc(lists, func(l []string) bool { return len(l) > 0 }) {
			m.addf("`to.operation` must have at least one field set, found at rule %d", i)
		}
		for _, p := range append(slices.Clone(o.GetPorts()), o.GetNotPorts()...) {
			if n, err := strconv.ParseUint(p, 10, 32); err != nil || n < 1 || n > 65535 {
				m.addf("invalid port %s", p)
			}
		}
	}
	for _, c := range r.GetWhen() {
		key := c.GetKey()
		switch {
		case key == "":
			m.addf("`key` cannot be empty")
		case len(c.GetValues()) == 0 && len(c.GetNotValues()) == 0:
			m.addf("at least one of `values` or `notValues` must be set for key %s", key)
		case slices.Contains(attributes, key):
		case strings.HasPrefix(key, "request.headers[") && strings.HasSuffix(key, "]"):
		case strings.HasPrefix(key, "request.auth.claims[") && strings.HasSuffix(key, "]"):
		default:
			m.addf("unknown attribute (%s)", key)
		}
		if key == "source.ip" || key == "remote.ip" || key == "destination.ip" {
			addresses(m, c.GetValues())
			addresses(m, c.GetNotValues())
		}
	}
}

func addresses(m *mistakes, list []string) {
	for _, a := range list {
		if _, err := netip.ParsePrefix(a); err == nil {
			continue
		}
		if _, err := netip.ParseAddr(a); err != nil {
			m.addf("invalid CIDR/IP address: %q", a)
		}
	}
}
