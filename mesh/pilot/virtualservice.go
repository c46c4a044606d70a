package pilot

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	commonfault "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/common/fault/v3"
	corsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/cors/v3"
	faultv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/fault/v3"
	ratelimitv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/local_ratelimit/v3"
	matcher "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/durationpb"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/periplus/periplus/mesh"
	"github.com/periplus/periplus/mesh/config"
)

// httpRoutes are a VirtualService's routes on the listener of a port: one for each
// condition, in order. What comes after one without conditions is never reached.
func (g *generator) httpRoutes(v *config.VirtualService, listener int) []*routev3.Route {
	var out []*routev3.Route
	for i, r := range v.Spec.GetHttp() {
		if len(r.GetMatch()) == 0 {
			out = append(out, g.httpRoute(v, i, nil, listener))
			break
		}
		all := false
		for _, m := range r.GetMatch() {
			if !g.concerns(m, listener) {
				continue
			}
			made := g.httpRoute(v, i, m, listener)
			out = append(out, made)
			if catchAll(made.GetMatch()) {
				all = true
				break
			}
		}
		if all {
			break
		}
	}
	return out
}

// concerns reports whether a condition can hold for clients of this view.
func (g *generator) concerns(m *networking.HTTPMatchRequest, listener int) bool {
	return (m.GetPort() == 0 || int(m.GetPort()) == listener) && subsetOf(m.GetSourceLabels(), g.labels) &&
		(m.GetSourceNamespace() == "" || m.GetSourceNamespace() == g.namespace) && forMesh(m.GetGateways())
}

func catchAll(m *routev3.RouteMatch) bool {
	return m.GetPrefix() == "/" && len(m.GetHeaders()) == 0 && len(m.GetQueryParameters()) == 0 && m.GetRuntimeFraction() == nil
}

func (g *generator) httpRoute(v *config.VirtualService, index int, m *networking.HTTPMatchRequest, listener int) *routev3.Route {
	r := v.Spec.GetHttp()[index]
	out := &routev3.Route{Name: r.GetName(), Match: routeMatch(m), Metadata: metadata(mesh.MetadataIstio, routeMetadata(v))}
	if m.GetName() != "" {
		out.Name += "." + m.GetName()
	}
	out.RequestHeadersToAdd, out.RequestHeadersToRemove = headerOperations(r.GetHeaders().GetRequest())
	out.ResponseHeadersToAdd, out.ResponseHeadersToRemove = headerOperations(r.GetHeaders().GetResponse())
	perFilter := map[string]*anypb.Any{}
	if c := r.GetCorsPolicy(); c != nil {
		perFilter[filterCORS] = pack(corsPolicy(c))
	}
	if f := fault(r.GetFault()); f != nil {
		perFilter[filterFault] = pack(f)
	}
	if limit, ok := v.RateLimits[index]; ok && limit.RequestsPerUnit > 0 {
		perFilter[filterRateLimit] = pack(rateLimit(limit, v.Key()+"/"+strconv.Itoa(index)))
	}
	if len(perFilter) > 0 {
		out.TypedPerFilterConfig = perFilter
	}
	switch {
	case r.GetRedirect() != nil:
		out.Action = &routev3.Route_Redirect{Redirect: redirect(r.GetRedirect())}
	case r.GetDirectResponse() != nil:
		d := &routev3.DirectResponseAction{Status: r.GetDirectResponse().GetStatus()}
		switch b := r.GetDirectResponse().GetBody().GetSpecifier().(type) {
		case *networking.HTTPBody_String_:
			d.Body = &core.DataSource{Specifier: &core.DataSource_InlineString{InlineString: b.String_}}
		case *networking.HTTPBody_Bytes:
			d.Body = &core.DataSource{Specifier: &core.DataSource_InlineBytes{InlineBytes: b.Bytes}}
		}
		out.Action = &routev3.Route_DirectResponse{DirectResponse: d}
	default:
		out.Action = &routev3.Route_Route{Route: g.routeAction(v, r, listener)}
	}
	return out
}

func (g *generator) routeAction(v *config.VirtualService, r *networking.HTTPRoute, listener int) *routev3.RouteAction {
	a := forward("", "").GetRoute()
	if t := r.GetTimeout(); t != nil {
		a.Timeout = durationpb.New(t.AsDuration())
	}
	a.RetryPolicy = retryPolicy(r.GetRetries())
	if w := r.GetRewrite(); w != nil {
		a.PrefixRewrite = w.GetUri()
		if x := w.GetUriRegexRewrite(); x != nil {
			a.PrefixRewrite = ""
			a.RegexRewrite = &matcher.RegexMatchAndSubstitute{Pattern: &matcher.RegexMatcher{Regex: x.GetMatch()}, Substitution: x.GetRewrite()}
		}
		if w.GetAuthority() != "" {
			a.HostRewriteSpecifier = &routev3.RouteAction_HostRewriteLiteral{HostRewriteLiteral: w.GetAuthority()}
		}
	}
	for k, value := range r.GetHeaders().GetRequest().GetSet() {
		if isHost(k) {
			a.HostRewriteSpecifier = &routev3.RouteAction_HostRewriteLiteral{HostRewriteLiteral: value}
		}
	}
	g.destinations(a, v, r.GetRoute(), listener)
	mirrors := r.GetMirrors()
	if r.GetMirror() != nil {
		share := r.GetMirrorPercentage()
		if share == nil {
			share = &networking.Percent{Value: 100}
			if p := r.GetMirrorPercent(); p != nil { //nolint:staticcheck // deprecated, but still there
				share.Value = float64(p.GetValue())
			}
		}
		mirrors = append([]*networking.HTTPMirrorPolicy{{Destination: r.GetMirror(), Percentage: share}}, mirrors...)
	}
	for _, mirror := range mirrors {
		value := 100.0
		if p := mirror.GetPercentage(); p != nil {
			value = p.GetValue()
		}
		a.RequestMirrorPolicies = append(a.RequestMirrorPolicies, &routev3.RouteAction_RequestMirrorPolicy{
			Cluster:         g.destination(v, mirror.GetDestination(), listener),
			RuntimeFraction: &core.RuntimeFractionalPercent{DefaultValue: fraction(value)},
		})
	}
	return a
}

// destinations sets where a route goes: one cluster, or several by weight.
func (g *generator) destinations(a *routev3.RouteAction, v *config.VirtualService, list []*networking.HTTPRouteDestination, listener int) {
	if len(list) > 0 {
		d := list[0].GetDestination()
		host := config.FullHost(d.GetHost(), v.Namespace, g.world.domain)
		if _, number, subset, _, err := mesh.ParseClusterName(g.destination(v, d, listener)); err == nil {
			a.HashPolicy = g.hashPolicy(g.world.byHost[host], number, subset)
		}
	}
	if len(list) == 1 && list[0].GetHeaders() == nil {
		a.ClusterSpecifier = &routev3.RouteAction_Cluster{Cluster: g.destination(v, list[0].GetDestination(), listener)}
		return
	}
	w := &routev3.WeightedCluster{}
	for _, d := range list {
		weight := d.GetWeight()
		if len(list) == 1 {
			weight = 100
		}
		if weight <= 0 {
			continue
		}
		c := &routev3.WeightedCluster_ClusterWeight{Name: g.destination(v, d.GetDestination(), listener), Weight: u32(int(weight))}
		c.RequestHeadersToAdd, c.RequestHeadersToRemove = headerOperations(d.GetHeaders().GetRequest())
		c.ResponseHeadersToAdd, c.ResponseHeadersToRemove = headerOperations(d.GetHeaders().GetResponse())
		w.Clusters = append(w.Clusters, c)
	}
	a.ClusterSpecifier = &routev3.RouteAction_WeightedClusters{WeightedClusters: w}
}

func routeMatch(m *networking.HTTPMatchRequest) *routev3.RouteMatch {
	out := &routev3.RouteMatch{PathSpecifier: &routev3.RouteMatch_Prefix{Prefix: "/"}}
	switch u := m.GetUri().GetMatchType().(type) {
	case *networking.StringMatch_Exact:
		out.PathSpecifier = &routev3.RouteMatch_Path{Path: u.Exact}
	case *networking.StringMatch_Prefix:
		out.PathSpecifier = &routev3.RouteMatch_Prefix{Prefix: u.Prefix}
	case *networking.StringMatch_Regex:
		out.PathSpecifier = &routev3.RouteMatch_SafeRegex{SafeRegex: &matcher.RegexMatcher{Regex: u.Regex}}
	}
	if m.GetIgnoreUriCase() {
		out.CaseSensitive = yes(false)
	}
	for _, name := range slices.Sorted(maps.Keys(m.GetHeaders())) {
		out.Headers = append(out.Headers, headerMatch(name, m.GetHeaders()[name], false))
	}
	for _, name := range slices.Sorted(maps.Keys(m.GetWithoutHeaders())) {
		out.Headers = append(out.Headers, headerMatch(name, m.GetWithoutHeaders()[name], true))
	}
	for _, special := range []struct {
		name  string
		value *networking.StringMatch
	}{{":method", m.GetMethod()}, {":authority", m.GetAuthority()}, {":scheme", m.GetScheme()}} {
		if special.value.GetMatchType() != nil {
			out.Headers = append(out.Headers, headerMatch(special.name, special.value, false))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(m.GetQueryParams())) {
		q := &routev3.QueryParameterMatcher{Name: name, QueryParameterMatchSpecifier: &routev3.QueryParameterMatcher_PresentMatch{PresentMatch: true}}
		if s := stringMatch(m.GetQueryParams()[name]); s != nil {
			q.QueryParameterMatchSpecifier = &routev3.QueryParameterMatcher_StringMatch{StringMatch: s}
		}
		out.QueryParameters = append(out.QueryParameters, q)
	}
	return out
}

// headerMatch compares a header; a match without a value asks whether it is there.
func headerMatch(name string, m *networking.StringMatch, without bool) *routev3.HeaderMatcher {
	out := &routev3.HeaderMatcher{Name: name, InvertMatch: without, HeaderMatchSpecifier: &routev3.HeaderMatcher_PresentMatch{PresentMatch: true}}
	if s := stringMatch(m); s != nil {
		out.HeaderMatchSpecifier = &routev3.HeaderMatcher_StringMatch{StringMatch: s}
		out.TreatMissingHeaderAsEmpty = without
	}
	return out
}

func stringMatch(m *networking.StringMatch) *matcher.StringMatcher {
	switch v := m.GetMatchType().(type) {
	case *networking.StringMatch_Exact:
		return exact(v.Exact)
	case *networking.StringMatch_Prefix:
		return prefix(v.Prefix)
	case *networking.StringMatch_Regex:
		if v.Regex == "*" {
			return nil // means: it is there
		}
		return regex(v.Regex)
	}
	return nil
}

func isHost(name string) bool {
	return strings.EqualFold(name, "host") || strings.EqualFold(name, ":authority")
}

func headerOperations(o *networking.Headers_HeaderOperations) (add []*core.HeaderValueOption, remove []string) {
	option := func(k, v string, action core.HeaderValueOption_HeaderAppendAction) {
		if !isHost(k) {
			add = append(add, &core.HeaderValueOption{Header: &core.HeaderValue{Key: k, Value: v}, AppendAction: action})
		}
	}
	for _, k := range slices.Sorted(maps.Keys(o.GetAdd())) {
		option(k, o.GetAdd()[k], core.HeaderValueOption_APPEND_IF_EXISTS_OR_ADD)
	}
	for _, k := range slices.Sorted(maps.Keys(o.GetSet())) {
		option(k, o.GetSet()[k], core.HeaderValueOption_OVERWRITE_IF_EXISTS_OR_ADD)
	}
	return add, o.GetRemove()
}

func redirect(r *networking.HTTPRedirect) *routev3.RedirectAction {
	out := &routev3.RedirectAction{HostRedirect: r.GetAuthority()}
	switch {
	case r.GetPrefixRewrite() != "":
		out.PathRewriteSpecifier = &routev3.RedirectAction_PrefixRewrite{PrefixRewrite: r.GetPrefixRewrite()}
	case strings.HasPrefix(r.GetUri(), "%PREFIX()%"):
		out.PathRewriteSpecifier = &routev3.RedirectAction_PrefixRewrite{PrefixRewrite: strings.TrimPrefix(r.GetUri(), "%PREFIX()%")}
	case r.GetUri() != "":
		out.PathRewriteSpecifier = &routev3.RedirectAction_PathRedirect{PathRedirect: r.GetUri()}
	}
	if r.GetScheme() != "" {
		out.SchemeRewriteSpecifier = &routev3.RedirectAction_SchemeRedirect{SchemeRedirect: r.GetScheme()}
	}
	out.PortRedirect = r.GetPort()
	switch r.GetRedirectCode() {
	case 302:
		out.ResponseCode = routev3.RedirectAction_FOUND
	case 303:
		out.ResponseCode = routev3.RedirectAction_SEE_OTHER
	case 307:
		out.ResponseCode = routev3.RedirectAction_TEMPORARY_REDIRECT
	case 308:
		out.ResponseCode = routev3.RedirectAction_PERMANENT_REDIRECT
	}
	return out
}

func corsPolicy(c *networking.CorsPolicy) *corsv3.CorsPolicy {
	out := &corsv3.CorsPolicy{
		AllowMethods: strings.Join(c.GetAllowMethods(), ","), AllowHeaders: strings.Join(c.GetAllowHeaders(), ","),
		ExposeHeaders: strings.Join(c.GetExposeHeaders(), ","),
		FilterEnabled: &core.RuntimeFractionalPercent{DefaultValue: fraction(100)},
	}
	for _, o := range c.GetAllowOrigins() {
		if m := stringMatch(o); m != nil {
			out.AllowOriginStringMatch = append(out.AllowOriginStringMatch, m)
		}
	}
	if d := c.GetMaxAge(); d != nil {
		out.MaxAge = strconv.FormatInt(int64(d.AsDuration().Seconds()), 10)
	}
	if v := c.GetAllowCredentials(); v != nil {
		out.AllowCredentials = yes(v.GetValue())
	}
	return out
}

func fault(f *networking.HTTPFaultInjection) *faultv3.HTTPFault {
	if f == nil {
		return nil
	}
	share := func(p *networking.Percent) *typev3.FractionalPercent {
		if p == nil {
			return fraction(100)
		}
		return fraction(p.GetValue())
	}
	out := &faultv3.HTTPFault{}
	if d := f.GetDelay(); d.GetFixedDelay() != nil {
		out.Delay = &commonfault.FaultDelay{
			FaultDelaySecifier: &commonfault.FaultDelay_FixedDelay{FixedDelay: durationpb.New(d.GetFixedDelay().AsDuration())}, Percentage: share(d.GetPercentage()),
		}
	}
	if a := f.GetAbort(); a != nil {
		out.Abort = &faultv3.FaultAbort{Percentage: share(a.GetPercentage())}
		switch e := a.GetErrorType().(type) {
		case *networking.HTTPFaultInjection_Abort_HttpStatus:
			out.Abort.ErrorType = &faultv3.FaultAbort_HttpStatus{HttpStatus: uint32(e.HttpStatus)}
		case *networking.HTTPFaultInjection_Abort_GrpcStatus:
			code, _ := config.GRPCStatus(e.GrpcStatus)
			out.Abort.ErrorType = &faultv3.FaultAbort_GrpcStatus{GrpcStatus: code}
		default:
			out.Abort = nil
		}
	}
	return out
}

// rateLimit is our extension, in Envoy's words, so that Envoy does it as well.
func rateLimit(r config.RateLimit, name string) *ratelimitv3.LocalRateLimit {
	burst := max(r.Burst, r.RequestsPerUnit)
	if r.Burst > 0 {
		burst = r.Burst
	}
	always := &core.RuntimeFractionalPercent{DefaultValue: fraction(100)}
	return &ratelimitv3.LocalRateLimit{
		StatPrefix:    name,
		TokenBucket:   &typev3.TokenBucket{MaxTokens: burst, TokensPerFill: u32(int(r.RequestsPerUnit)), FillInterval: durationpb.New(r.Per())},
		FilterEnabled: always, FilterEnforced: always,
	}
}

// splitRetryOn takes numbers out of the list of reasons.
func splitRetryOn(s string) (string, []uint32) {
	var words []string
	var codes []uint32
	for part := range strings.SplitSeq(s, ",") {
		part = strings.TrimSpace(part)
		if n, err := strconv.ParseUint(part, 10, 16); err == nil {
			codes = append(codes, uint32(n))
		} else if part != "" {
			words = append(words, part)
		}
	}
	if len(codes) > 0 && !slices.Contains(words, "retriable-status-codes") {
		words = append(words, "retriable-status-codes")
	}
	return strings.Join(words, ","), codes
}
