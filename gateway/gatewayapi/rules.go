package gatewayapi

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/utils/ptr"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/periplus/periplus/l7"
)

// A rule is one of an HTTPRoute, or one of a GRPCRoute in the same words.
type rule struct {
	matches  []gatewayv1.HTTPRouteMatch
	filters  []gatewayv1.HTTPRouteFilter
	backends []gatewayv1.HTTPBackendRef
	timeouts *gatewayv1.HTTPRouteTimeouts
	retry    *gatewayv1.HTTPRouteRetry
	grpc     bool
}

func httpRules(h *gatewayv1.HTTPRoute) []rule {
	out := make([]rule, 0, len(h.Spec.Rules))
	for _, r := range h.Spec.Rules {
		out = append(out, rule{r.Matches, r.Filters, r.BackendRefs, r.Timeouts, r.Retry, false})
	}
	return out
}

// grpcRules: a method of gRPC is a POST to /service/method.
func grpcRules(g *gatewayv1.GRPCRoute) []rule {
	out := make([]rule, 0, len(g.Spec.Rules))
	for _, r := range g.Spec.Rules {
		x := rule{grpc: true}
		for _, m := range r.Matches {
			x.matches = append(x.matches, grpcMatch(&m))
		}
		for _, f := range r.Filters {
			x.filters = append(x.filters, grpcFilter(&f))
		}
		for _, b := range r.BackendRefs {
			ref := gatewayv1.HTTPBackendRef{BackendRef: b.BackendRef}
			for _, f := range b.Filters {
				ref.Filters = append(ref.Filters, grpcFilter(&f))
			}
			x.backends = append(x.backends, ref)
		}
		out = append(out, x)
	}
	return out
}

func grpcMatch(m *gatewayv1.GRPCRouteMatch) gatewayv1.HTTPRouteMatch {
	var out gatewayv1.HTTPRouteMatch
	if mm := m.Method; mm != nil {
		service, method := ptr.Deref(mm.Service, ""), ptr.Deref(mm.Method, "")
		kind, value := gatewayv1.PathMatchExact, "/"+service+"/"+method
		switch {
		case mm.Type != nil && *mm.Type == gatewayv1.GRPCMethodMatchRegularExpression:
			kind = gatewayv1.PathMatchRegularExpression
			if service == "" {
				service = "[^/]+"
			}
			if method == "" {
				method = "[^/]+"
			}
			value = "/" + service + "/" + method
		case method == "":
			kind, value = gatewayv1.PathMatchPathPrefix, "/"+service
		case service == "":
			kind, value = gatewayv1.PathMatchRegularExpression, "/[^/]+/"+method
		}
		out.Path = &gatewayv1.HTTPPathMatch{Type: &kind, Value: &value}
	}
	for _, h := range m.Headers {
		x := gatewayv1.HTTPHeaderMatch{Name: gatewayv1.HTTPHeaderName(h.Name), Value: h.Value}
		if h.Type != nil {
			x.Type = ptr.To(gatewayv1.HeaderMatchType(*h.Type))
		}
		out.Headers = append(out.Headers, x)
	}
	return out
}

func grpcFilter(f *gatewayv1.GRPCRouteFilter) gatewayv1.HTTPRouteFilter {
	return gatewayv1.HTTPRouteFilter{
		Type: gatewayv1.HTTPRouteFilterType(f.Type), RequestHeaderModifier: f.RequestHeaderModifier,
		ResponseHeaderModifier: f.ResponseHeaderModifier, RequestMirror: f.RequestMirror, ExtensionRef: f.ExtensionRef,
	}
}

// A ranked route with its place among those of a host, as the specification orders
// them: exact path, longer path, method, more headers, more parameters, older route,
// name, place in the route.
type ranked struct {
	route *l7.Route
	rank  []int
}

// compile makes the routes of a route at a listener; without a listener only
// references are looked at.
func (st *state) compile(r *routeState, l *listener) []ranked {
	var out []ranked
	for i := range r.rules {
		x := &r.rules[i]
		matches := x.matches
		if len(matches) == 0 {
			matches = []gatewayv1.HTTPRouteMatch{{}}
		}
		base := st.action(r, x, i, l)
		for j := range matches {
			m, rank, err := match(&matches[j])
			if err != nil {
				r.refuse(err.Error())
				continue
			}
			route := *base
			route.Match = m
			if l != nil && route.Forward != nil {
				route.Filters = append(slices.Clip(route.Filters), st.build.Answers(r.kind, r.object, fmt.Sprintf("%d/%d", i, j))...)
			}
			out = append(out, ranked{&route, append(rank, r.order, i, j)})
		}
	}
	return out
}

func (r *routeState) refuse(message string) {
	if r.refused.reason == "" {
		r.refused = problem{string(gatewayv1.RouteReasonUnsupportedValue), message}
	}
}

func (r *routeState) unresolved(p problem) {
	if r.refs.reason == "" {
		r.refs = p
	}
}

// match makes a match and the first part of its rank.
func match(m *gatewayv1.HTTPRouteMatch) (l7.RouteMatch, []int, error) {
	var out l7.RouteMatch
	kind, value := gatewayv1.PathMatchPathPrefix, "/"
	if m.Path != nil {
		kind, value = ptr.Deref(m.Path.Type, kind), ptr.Deref(m.Path.Value, value)
	}
	rank := []int{0, -len(value), 1, -len(m.Headers), -len(m.QueryParams)}
	switch kind {
	case gatewayv1.PathMatchExact:
		out.Path = l7.PathMatch{Kind: l7.PathExact, Value: value}
	case gatewayv1.PathMatchRegularExpression:
		e, err := l7.Anchored(value)
		if err != nil {
			return out, nil, fmt.Errorf("path %q: %w", value, err)
		}
		out.Path = l7.PathMatch{Kind: l7.PathRegex, Value: value, Regex: e}
		rank[0] = 1
	default:
		out.Path = l7.PathMatch{Kind: l7.PathSegments, Value: value}
		rank[0], rank[1] = 1, -len(strings.TrimSuffix(value, "/"))
	}
	if m.Method != nil {
		out.Method = string(*m.Method)
		rank[2] = 0
	}
	for _, h := range m.Headers {
		s, err := stringMatch(h.Type != nil && *h.Type == gatewayv1.HeaderMatchRegularExpression, h.Value)
		if err != nil {
			return out, nil, fmt.Errorf("header %s: %w", h.Name, err)
		}
		out.Headers = append(out.Headers, l7.HeaderMatch{Name: string(h.Name), Value: s})
	}
	for _, q := range m.QueryParams {
		s, err := stringMatch(q.Type != nil && *q.Type == gatewayv1.QueryParamMatchRegularExpression, q.Value)
		if err != nil {
			return out, nil, fmt.Errorf("query parameter %s: %w", q.Name, err)
		}
		out.Query = append(out.Query, l7.QueryMatch{Name: string(q.Name), Value: s})
	}
	return out, rank, nil
}

func stringMatch(regex bool, value string) (l7.StringMatch, error) {
	if !regex {
		return l7.StringMatch{Kind: l7.MatchExact, Value: value}, nil
	}
	e, err := l7.Anchored(value)
	return l7.StringMatch{Kind: l7.MatchRegex, Regex: e}, err
}

// action makes what a rule does, without its match.
func (st *state) action(r *routeState, x *rule, index int, l *listener) *l7.Route {
	route := &l7.Route{
		Name:     fmt.Sprintf("%s/%s/%d", r.object.GetNamespace(), r.object.GetName(), index),
		Metadata: map[string]string{"route": r.object.GetName(), "namespace": r.object.GetNamespace(), "kind": r.kind},
	}
	f := st.filters(r, x.filters, l)
	route.Filters = f.filters
	if f.broken != "" {
		route.Direct = &l7.Reply{Status: 500, Details: f.broken}
		return route
	}
	if f.redirect != nil {
		route.Redirect = f.redirect
		return route
	}
	forward := &l7.Forward{Path: f.path, Host: f.host, Mirrors: f.mirrors}
	r.timeouts(x, forward)
	options := l7.Cluster{}
	suffix := ""
	if x.grpc {
		options.Protocol, suffix = l7.ProtocolHTTP2, "grpc"
	}
	for i := range x.backends {
		b := &x.backends[i]
		w := l7.WeightedCluster{Weight: uint32(max(ptr.Deref(b.Weight, 1), 0))}
		name, p := st.backend(r, &b.BackendObjectReference, suffix, options)
		if p.reason != "" {
			r.unresolved(p)
			w.Direct = &l7.Reply{Status: 500, Details: p.message}
		}
		w.Name = name
		bf := st.filters(r, b.Filters, l)
		w.Filters, w.Host = bf.filters, bf.host
		if bf.broken != "" {
			w.Direct = &l7.Reply{Status: 500, Details: bf.broken}
		}
		forward.Weighted = append(forward.Weighted, w)
	}
	total := uint32(0)
	for _, w := range forward.Weighted {
		total += w.Weight
	}
	if total == 0 {
		route.Direct = &l7.Reply{Status: 500, Details: "no_backend"}
		return route
	}
	if w := forward.Weighted; len(w) == 1 && w[0].Direct == nil && len(w[0].Filters) == 0 && w[0].Host == "" {
		forward.Cluster, forward.Weighted = w[0].Name, nil
	}
	route.Forward = forward
	return route
}

// timeouts reads timeouts and retries.
func (r *routeState) timeouts(x *rule, f *l7.Forward) {
	duration := func(d *gatewayv1.Duration) time.Duration {
		if d == nil {
			return 0
		}
		v, err := time.ParseDuration(string(*d))
		if err != nil {
			r.refuse(fmt.Sprintf("duration %q: %v", *d, err))
		}
		return v
	}
	f.Retry = &l7.RetryPolicy{On: l7.RetryConnectFailure | l7.RetryRefusedStream, Attempts: 2, BackOff: 5 * time.Millisecond}
	if x.retry != nil {
		f.Retry = &l7.RetryPolicy{On: l7.RetryConnectFailure | l7.RetryRefusedStream | l7.RetryReset | l7.RetryStatusCodes, Attempts: ptr.Deref(x.retry.Attempts, 1), BackOff: duration(x.retry.Backoff)}
		for _, c := range x.retry.Codes {
			f.Retry.StatusCodes = append(f.Retry.StatusCodes, int(c))
		}
	}
	if x.timeouts == nil {
		return
	}
	f.Timeout = duration(x.timeouts.Request)
	f.Retry.PerTry = duration(x.timeouts.BackendRequest)
}
