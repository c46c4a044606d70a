package translate

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	route "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	faultv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/fault/v3"
	ratelimitv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/local_ratelimit/v3"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/periplus/periplus/l7"
	"github.com/periplus/periplus/l7/filter/fault"
	"github.com/periplus/periplus/l7/filter/headers"
	"github.com/periplus/periplus/l7/filter/ratelimit"
)

func (s *State) routeConfiguration(m *route.RouteConfiguration) (*l7.RouteConfiguration, error) {
	out := &l7.RouteConfiguration{}
	for _, v := range m.GetVirtualHosts() {
		host := &l7.VirtualHost{Name: v.GetName(), Domains: v.GetDomains()}
		for i, r := range v.GetRoutes() {
			made, err := s.route(r)
			if err != nil {
				return nil, fmt.Errorf("virtual host %s: route %d (%s): %w", v.GetName(), i, r.GetName(), err)
			}
			host.Routes = append(host.Routes, made)
		}
		out.VirtualHosts = append(out.VirtualHosts, host)
	}
	return out, nil
}

func (s *State) route(m *route.Route) (*l7.Route, error) {
	out := &l7.Route{Name: m.GetName()}
	var err error
	if out.Match, err = routeMatch(m.GetMatch()); err != nil {
		return nil, err
	}
	if out.Filters, err = s.routeFilters(m.GetTypedPerFilterConfig()); err != nil {
		return nil, err
	}
	if f := headerFilter(m.GetRequestHeadersToAdd(), m.GetRequestHeadersToRemove(), m.GetResponseHeadersToAdd(), m.GetResponseHeadersToRemove()); f != nil {
		out.Filters = append(out.Filters, f)
	}
	switch a := m.GetAction().(type) {
	case *route.Route_Route:
		out.Forward, err = s.forward(a.Route)
	case *route.Route_Redirect:
		out.Redirect, err = redirect(a.Redirect)
	case *route.Route_DirectResponse:
		out.Direct = &l7.Reply{Status: int(a.DirectResponse.GetStatus()), Body: body(a.DirectResponse.GetBody()), Details: "direct_response"}
	default:
		err = fmt.Errorf("action %T is not supported", a)
	}
	return out, err
}

func body(d *core.DataSource) string {
	if b := d.GetInlineBytes(); b != nil {
		return string(b)
	}
	return d.GetInlineString()
}

// routeFilters are what a route says to filters by their names.
func (s *State) routeFilters(m map[string]*anypb.Any) ([]l7.Filter, error) {
	var out []l7.Filter
	if b := m["envoy.filters.http.fault"]; b != nil {
		f := &faultv3.HTTPFault{}
		if err := unmarshal(b, f); err != nil {
			return nil, err
		}
		made := &fault.Filter{
			Delay: f.GetDelay().GetFixedDelay().AsDuration(), DelayFraction: millionths(f.GetDelay().GetPercentage()),
			AbortFraction: millionths(f.GetAbort().GetPercentage()),
		}
		switch e := f.GetAbort().GetErrorType().(type) {
		case *faultv3.FaultAbort_HttpStatus:
			made.AbortStatus = int(e.HttpStatus)
		case *faultv3.FaultAbort_GrpcStatus:
			made.AbortGRPC = int(e.GrpcStatus)
		}
		out = append(out, made)
	}
	if b := m["envoy.filters.http.cors"]; b != nil {
		c, err := corsFilter(b)
		if err != nil {
			return nil, err
		}
		out = append(out, c)
	}
	if b := m["envoy.filters.http.local_ratelimit"]; b != nil {
		f := &ratelimitv3.LocalRateLimit{}
		if err := unmarshal(b, f); err != nil {
			return nil, err
		}
		if bucket := f.GetTokenBucket(); bucket != nil {
			out = append(out, &ratelimit.Filter{Limiter: s.limiter(f)})
		}
	}
	return out, nil
}

// limiter returns the one that is there, with its tokens.
func (s *State) limiter(f *ratelimitv3.LocalRateLimit) *ratelimit.Limiter {
	b := f.GetTokenBucket()
	per := max(b.GetFillInterval().AsDuration(), time.Millisecond).Seconds()
	rate, burst := float64(max(b.GetTokensPerFill().GetValue(), 1))/per, int(b.GetMaxTokens())
	l := s.limiters[f.GetStatPrefix()]
	if l == nil {
		l = ratelimit.NewLimiter(rate, burst)
		s.limiters[f.GetStatPrefix()] = l
		return l
	}
	l.Configure(rate, burst)
	return l
}

func headerFilter(add []*core.HeaderValueOption, remove []string, responseAdd []*core.HeaderValueOption, responseRemove []string) l7.Filter {
	if len(add)+len(remove)+len(responseAdd)+len(responseRemove) == 0 {
		return nil
	}
	return headers.New(headerChange(add, remove), headerChange(responseAdd, responseRemove))
}

func headerChange(add []*core.HeaderValueOption, remove []string) headers.Change {
	out := headers.Change{Remove: remove}
	for _, o := range add {
		f := l7.Field{Name: o.GetHeader().GetKey(), Value: o.GetHeader().GetValue()}
		switch {
		case o.GetAppendAction() == core.HeaderValueOption_OVERWRITE_IF_EXISTS_OR_ADD, o.GetAppend() != nil && !o.GetAppend().GetValue(): //nolint:staticcheck // others still send it
			out.Set = append(out.Set, f)
		case o.GetAppendAction() == core.HeaderValueOption_ADD_IF_ABSENT:
			out.Default = append(out.Default, f)
		default:
			out.Add = append(out.Add, f)
		}
	}
	return out
}

func (s *State) forward(a *route.RouteAction) (*l7.Forward, error) {
	out := &l7.Forward{Cluster: a.GetCluster(), ClusterHeader: a.GetClusterHeader(), Timeout: a.GetTimeout().AsDuration(), IdleTimeout: a.GetIdleTimeout().AsDuration()}
	for _, w := range a.GetWeightedClusters().GetClusters() {
		c := l7.WeightedCluster{Name: w.GetName(), Weight: w.GetWeight().GetValue(), Host: w.GetHostRewriteLiteral()}
		if f := headerFilter(w.GetRequestHeadersToAdd(), w.GetRequestHeadersToRemove(), w.GetResponseHeadersToAdd(), w.GetResponseHeadersToRemove()); f != nil {
			c.Filters = append(c.Filters, f)
		}
		out.Weighted = append(out.Weighted, c)
	}
	switch {
	case a.GetPrefixRewrite() != "":
		p := a.GetPrefixRewrite()
		out.Path = &l7.PathRewrite{Prefix: &p}
	case a.GetRegexRewrite() != nil:
		r, err := regexp.Compile(a.GetRegexRewrite().GetPattern().GetRegex())
		if err != nil {
			return nil, err
		}
		out.Path = &l7.PathRewrite{Regex: r, Substitution: a.GetRegexRewrite().GetSubstitution()}
	}
	switch h := a.GetHostRewriteSpecifier().(type) {
	case *route.RouteAction_HostRewriteLiteral:
		out.Host = h.HostRewriteLiteral
	case *route.RouteAction_AutoHostRewrite:
		out.HostOfEndpoint = h.AutoHostRewrite.GetValue()
	}
	out.Retry = retry(a.GetRetryPolicy())
	for _, m := range a.GetRequestMirrorPolicies() {
		share := millionths(m.GetRuntimeFraction().GetDefaultValue())
		if m.GetRuntimeFraction() == nil {
			share = 1_000_000
		}
		if share > 0 { // zero would be all
			out.Mirrors = append(out.Mirrors, l7.Mirror{Cluster: m.GetCluster(), Fraction: share})
		}
	}
	for _, p := range a.GetHashPolicy() {
		h := l7.HashPolicy{}
		switch v := p.GetPolicySpecifier().(type) {
		case *route.RouteAction_HashPolicy_Header_:
			h.Header = v.Header.GetHeaderName()
		case *route.RouteAction_HashPolicy_QueryParameter_:
			h.Query = v.QueryParameter.GetName()
		case *route.RouteAction_HashPolicy_ConnectionProperties_:
			h.SourceIP = v.ConnectionProperties.GetSourceIp()
		case *route.RouteAction_HashPolicy_Cookie_:
			h.Cookie, h.CookiePath, h.CookieTTL = v.Cookie.GetName(), v.Cookie.GetPath(), -1
			if v.Cookie.GetTtl() != nil {
				h.CookieTTL = v.Cookie.GetTtl().AsDuration()
			}
		default:
			return nil, fmt.Errorf("hash policy %T is not supported", v)
		}
		out.Hash = append(out.Hash, h)
	}
	return out, nil
}

// reasons are Envoy's words for reasons to try again.
var reasons = map[string]l7.RetryOn{
	"connect-failure": l7.RetryConnectFailure, "reset": l7.RetryReset, "reset-before-request": l7.RetryConnectFailure, "refused-stream": l7.RetryRefusedStream,
	"5xx": l7.Retry5xx, "gateway-error": l7.RetryGatewayError, "retriable-4xx": l7.RetryRetriable4xx, "retriable-status-codes": l7.RetryStatusCodes,
	"cancelled": l7.RetryCancelled, "deadline-exceeded": l7.RetryDeadlineExceeded, "internal": l7.RetryInternal,
	"resource-exhausted": l7.RetryResourceExhausted, "unavailable": l7.RetryUnavailable,
}

func retry(m *route.RetryPolicy) *l7.RetryPolicy {
	if m == nil {
		return nil
	}
	out := &l7.RetryPolicy{
		Attempts: 1, PerTry: m.GetPerTryTimeout().AsDuration(), BackOff: m.GetRetryBackOff().GetBaseInterval().AsDuration(),
		MaxBackOff: m.GetRetryBackOff().GetMaxInterval().AsDuration(), SameHost: len(m.GetRetryHostPredicate()) == 0,
	}
	if n := m.GetNumRetries(); n != nil {
		out.Attempts = int(n.GetValue())
	}
	for part := range strings.SplitSeq(m.GetRetryOn(), ",") {
		out.On |= reasons[strings.TrimSpace(part)]
	}
	for _, c := range m.GetRetriableStatusCodes() {
		out.StatusCodes = append(out.StatusCodes, int(c))
	}
	return out
}

func redirect(m *route.RedirectAction) (*l7.Redirect, error) {
	out := &l7.Redirect{Host: m.GetHostRedirect(), Port: int(m.GetPortRedirect()), Scheme: m.GetSchemeRedirect(), StripQuery: m.GetStripQuery()}
	if m.GetHttpsRedirect() {
		out.Scheme = "https"
	}
	switch p := m.GetPathRewriteSpecifier().(type) {
	case *route.RedirectAction_PathRedirect:
		out.Path = &l7.PathRewrite{Full: &p.PathRedirect}
	case *route.RedirectAction_PrefixRewrite:
		out.Path = &l7.PathRewrite{Prefix: &p.PrefixRewrite}
	case *route.RedirectAction_RegexRewrite:
		r, err := regexp.Compile(p.RegexRewrite.GetPattern().GetRegex())
		if err != nil {
			return nil, err
		}
		out.Path = &l7.PathRewrite{Regex: r, Substitution: p.RegexRewrite.GetSubstitution()}
	}
	codes := map[route.RedirectAction_RedirectResponseCode]int{
		route.RedirectAction_MOVED_PERMANENTLY: 301, route.RedirectAction_FOUND: 302, route.RedirectAction_SEE_OTHER: 303,
		route.RedirectAction_TEMPORARY_REDIRECT: 307, route.RedirectAction_PERMANENT_REDIRECT: 308,
	}
	code, ok := codes[m.GetResponseCode()]
	if !ok {
		return nil, fmt.Errorf("redirect code %s is not supported", strconv.Itoa(int(m.GetResponseCode())))
	}
	out.Code = code
	return out, nil
}
