package validate

import (
	"net/netip"
	"strconv"
	"strings"

	networking "istio.io/api/networking/v1alpha3"

	"github.com/periplus/periplus/mesh/config"
)

// VirtualService checks routes.
func VirtualService(v *config.VirtualService) error {
	var m mistakes
	s := v.Spec
	onlyGateways := len(s.GetGateways()) > 0
	for _, g := range s.GetGateways() {
		onlyGateways = onlyGateways && g != "mesh"
	}
	if len(s.GetHosts()) == 0 {
		m.addf("virtual service must have at least one host")
	}
	seen := map[string]bool{}
	for _, h := range s.GetHosts() {
		if err := wildcardHost(h); err != nil {
			if _, ip := netip.ParseAddr(h); ip != nil {
				m.add(err)
			}
		} else if h == "*" && !onlyGateways {
			m.addf("wildcard host * is not allowed for virtual services bound to the mesh gateway")
		}
		if seen[h] {
			m.addf("duplicate hosts in virtual service: %s", h)
		}
		seen[h] = true
	}
	if len(s.GetHttp()) == 0 && len(s.GetTcp()) == 0 && len(s.GetTls()) == 0 {
		m.addf("http, tcp or tls must be provided in virtual service")
	}
	for i, r := range s.GetHttp() {
		if r == nil {
			m.addf("http route may not be null")
			continue
		}
		httpRoute(&m, r)
		if limit, ok := v.RateLimits[i]; ok {
			if limit.RequestsPerUnit == 0 {
				m.addf("rate limit requestsPerUnit must be greater than 0")
			}
			if limit.Per() == 0 {
				m.addf("rate limit unit %q must be SECOND, MINUTE or HOUR", limit.Unit)
			}
		}
	}
	for _, r := range s.GetTcp() {
		if len(r.GetRoute()) == 0 {
			m.addf("TCP route is required")
		}
		routeDestinations(&m, r.GetRoute())
	}
	for _, r := range s.GetTls() {
		if len(r.GetRoute()) == 0 {
			m.addf("TLS route is required")
		}
		if len(r.GetMatch()) == 0 {
			m.addf("TLS route must have at least one match condition")
		}
		routeDestinations(&m, r.GetRoute())
	}
	return m.err()
}

func httpRoute(m *mistakes, r *networking.HTTPRoute) {
	switch {
	case r.GetRedirect() != nil:
		if len(r.GetRoute()) > 0 {
			m.addf("HTTP route cannot contain both route and redirect")
		}
		if r.GetFault() != nil {
			m.addf("HTTP route cannot contain both fault and redirect")
		}
		if r.GetRewrite() != nil {
			m.addf("HTTP route rule cannot contain both rewrite and redirect")
		}
	case r.GetDirectResponse() != nil:
		if len(r.GetRoute()) > 0 {
			m.addf("HTTP route cannot contain both route and direct_response")
		}
	case len(r.GetRoute()) == 0 && r.GetDelegate() == nil:
		m.addf("HTTP route, redirect or direct_response is required")
	}
	for _, c := range r.GetMatch() {
		httpMatch(m, c)
	}
	for _, ops := range []*networking.Headers_HeaderOperations{r.GetHeaders().GetRequest(), r.GetHeaders().GetResponse()} {
		headerOperations(m, ops)
	}
	fault(m, r.GetFault())
	if r.GetMirrorPercentage() != nil {
		switch v := r.GetMirrorPercentage().GetValue(); {
		case v > 100:
			m.addf("mirror_percentage must have a max value of 100 (it has %f)", v)
		case v < 0:
			m.addf("mirror_percentage must have a min value of 0 (it has %f)", v)
		}
	}
	destination(m, r.GetMirror())
	for _, mirror := range r.GetMirrors() {
		if mirror.GetDestination() == nil {
			m.addf("destination is required in mirrors")
		}
		destination(m, mirror.GetDestination())
	}
	if d := r.GetRedirect(); d != nil && d.GetUri() == "" && d.GetAuthority() == "" && d.GetRedirectPort() == nil && d.GetScheme() == "" {
		m.addf("redirect must specify URI, authority, scheme, or port")
	}
	if d := r.GetDirectResponse(); d != nil && (d.GetStatus() < 200 || d.GetStatus() > 599) {
		m.addf("HTTP status %d is not in range 200-599", d.GetStatus())
	}
	if w := r.GetRewrite(); w != nil && w.GetUri() == "" && w.GetAuthority() == "" && w.GetUriRegexRewrite() == nil {
		m.addf("rewrite must specify at least one of URI, authority, or regex rewrite")
	}
	retries(m, r.GetRetries())
	m.add(duration(r.GetTimeout()))
	total := int32(0)
	for _, d := range r.GetRoute() {
		if d.GetDestination() == nil {
			m.addf("destination is required")
		}
		destination(m, d.GetDestination())
		if d.GetWeight() < 0 {
			m.addf("weight %d < 0", d.GetWeight())
		}
		total += d.GetWeight()
	}
	if len(r.GetRoute()) > 1 && total == 0 {
		m.addf("total destination weight = 0")
	}
}

func httpMatch(m *mistakes, c *networking.HTTPMatchRequest) {
	for name, h := range c.GetHeaders() {
		if h == nil {
			m.addf("header match %v cannot be null", name)
		}
		m.add(header(name))
		m.add(text(h, "headers"))
	}
	for name, h := range c.GetWithoutHeaders() {
		m.add(header(name))
		m.add(text(h, "withoutHeaders"))
	}
	m.add(text(c.GetUri(), "uri"))
	m.add(text(c.GetScheme(), "scheme"))
	m.add(text(c.GetMethod(), "method"))
	m.add(text(c.GetAuthority(), "authority"))
	for _, q := range c.GetQueryParams() {
		m.add(text(q, "queryParams"))
	}
	if c.GetPort() != 0 {
		m.add(port(c.GetPort()))
	}
	m.add(labels(c.GetSourceLabels()))
	if n := c.GetSourceNamespace(); n != "" && (len(n) > 63 || !dnsLabel.MatchString(n)) {
		m.addf("sourceNamespace match %s is invalid", n)
	}
}

func headerOperations(m *mistakes, o *networking.Headers_HeaderOperations) {
	for name := range o.GetAdd() {
		m.add(header(name))
	}
	for name := range o.GetSet() {
		m.add(header(name))
	}
	for _, name := range o.GetRemove() {
		m.add(header(name))
	}
}

func fault(m *mistakes, f *networking.HTTPFaultInjection) {
	if f == nil {
		return
	}
	if f.GetAbort() == nil && f.GetDelay() == nil {
		m.addf("HTTP fault injection must have an abort and/or a delay")
	}
	if a := f.GetAbort(); a != nil {
		m.add(share(a.GetPercentage()))
		switch e := a.GetErrorType().(type) {
		case *networking.HTTPFaultInjection_Abort_HttpStatus:
			if e.HttpStatus < 200 || e.HttpStatus > 599 {
				m.addf("HTTP status %d is not in range 200-599", e.HttpStatus)
			}
		case *networking.HTTPFaultInjection_Abort_GrpcStatus:
			if _, ok := config.GRPCStatus(e.GrpcStatus); !ok {
				m.addf("%q is not a valid gRPC status code", e.GrpcStatus)
			}
		case *networking.HTTPFaultInjection_Abort_Http2Error:
			m.addf("HTTP/2 abort fault injection not supported yet")
		default:
			m.addf("HTTP fault abort must specify an error type")
		}
	}
	if d := f.GetDelay(); d != nil {
		m.add(share(d.GetPercentage()))
		switch v := d.GetHttpDelayType().(type) {
		case *networking.HTTPFaultInjection_Delay_FixedDelay:
			m.add(duration(v.FixedDelay))
		case *networking.HTTPFaultInjection_Delay_ExponentialDelay:
			m.addf("exponentialDelay not supported yet")
		default:
			m.addf("HTTP fault delay must specify a fixed delay")
		}
	}
}

func retries(m *mistakes, r *networking.HTTPRetry) {
	if r == nil {
		return
	}
	if r.GetAttempts() < 0 {
		m.addf("attempts cannot be negative")
	}
	if r.GetAttempts() == 0 && (r.GetPerTryTimeout() != nil || r.GetRetryOn() != "" || r.GetRetryRemoteLocalities() != nil) {
		m.addf("http retry policy configured when attempts are set to 0 (disabled)")
	}
	m.add(duration(r.GetPerTryTimeout()))
	for part := range strings.SplitSeq(r.GetRetryOn(), ",") {
		part = strings.TrimSpace(part)
		if part == "" {
			continue
		}
		if n, err := strconv.Atoi(part); err == nil {
			if n < 100 || n > 599 {
				m.addf("%q is not a valid retryOn value", part)
			}
			continue
		}
		if _, ok := config.RetryOn[part]; !ok {
			m.addf("%q is not a valid retryOn policy", part)
		}
	}
}

func destination(m *mistakes, d *networking.Destination) {
	if d == nil {
		return
	}
	if d.GetHost() == "*" {
		m.addf("invalid destination host %s", d.GetHost())
	} else {
		m.add(wildcardHost(d.GetHost()))
	}
	if d.GetSubset() != "" {
		m.add(subset(d.GetSubset()))
	}
	if d.GetPort() != nil {
		m.add(port(d.GetPort().GetNumber()))
	}
}

func routeDestinations(m *mistakes, list []*networking.RouteDestination) {
	total := int32(0)
	for _, d := range list {
		if d.GetDestination() == nil {
			m.addf("destination is required")
		}
		destination(m, d.GetDestination())
		if d.GetWeight() < 0 {
			m.addf("weight %d < 0", d.GetWeight())
		}
		total += d.GetWeight()
	}
	if len(list) > 1 && total == 0 {
		m.addf("total destination weight = 0")
	}
}
