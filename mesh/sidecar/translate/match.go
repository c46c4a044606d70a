package translate

import (
	"fmt"
	"regexp"
	"strings"

	route "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	matcher "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"

	"github.com/periplus/periplus/l7"
)

func stringMatch(m *matcher.StringMatcher) (l7.StringMatch, error) {
	out := l7.StringMatch{IgnoreCase: m.GetIgnoreCase()}
	switch v := m.GetMatchPattern().(type) {
	case *matcher.StringMatcher_Exact:
		out.Kind, out.Value = l7.MatchExact, v.Exact
	case *matcher.StringMatcher_Prefix:
		out.Kind, out.Value = l7.MatchPrefix, v.Prefix
	case *matcher.StringMatcher_Suffix:
		out.Kind, out.Value = l7.MatchSuffix, v.Suffix
	case *matcher.StringMatcher_Contains:
		out.Kind, out.Value = l7.MatchContains, v.Contains
	case *matcher.StringMatcher_SafeRegex:
		r, err := regexp.Compile(v.SafeRegex.GetRegex())
		if err != nil {
			return out, err
		}
		out.Kind, out.Regex = l7.MatchRegex, r
	default:
		return out, fmt.Errorf("string match %T is not supported", v)
	}
	return out, nil
}

func headerMatch(m *route.HeaderMatcher) (l7.HeaderMatch, error) {
	out := l7.HeaderMatch{Name: m.GetName(), Invert: m.GetInvertMatch()}
	switch v := m.GetHeaderMatchSpecifier().(type) {
	case *route.HeaderMatcher_PresentMatch:
		out.Present, out.Invert = true, m.GetInvertMatch() == v.PresentMatch
	case *route.HeaderMatcher_StringMatch:
		var err error
		out.Value, err = stringMatch(v.StringMatch)
		return out, err
	case *route.HeaderMatcher_ExactMatch:
		out.Value = l7.StringMatch{Kind: l7.MatchExact, Value: v.ExactMatch} //nolint:staticcheck // others still send it
	case *route.HeaderMatcher_PrefixMatch:
		out.Value = l7.StringMatch{Kind: l7.MatchPrefix, Value: v.PrefixMatch} //nolint:staticcheck // others still send it
	default:
		return out, fmt.Errorf("header match %T is not supported", v)
	}
	return out, nil
}

// millionths is a share as l7 counts it.
func millionths(f *typev3.FractionalPercent) uint32 {
	n := uint64(f.GetNumerator())
	switch f.GetDenominator() {
	case typev3.FractionalPercent_HUNDRED:
		n *= 10000
	case typev3.FractionalPercent_TEN_THOUSAND:
		n *= 100
	}
	return uint32(min(n, 1_000_000))
}

func routeMatch(m *route.RouteMatch) (l7.RouteMatch, error) {
	out := l7.RouteMatch{}
	if c := m.GetCaseSensitive(); c != nil {
		out.Path.IgnoreCase = !c.GetValue()
	}
	switch p := m.GetPathSpecifier().(type) {
	case *route.RouteMatch_Prefix:
		if out.Path.Kind, out.Path.Value = l7.PathPrefix, p.Prefix; p.Prefix == "" {
			out.Path.Kind = l7.PathAny
		}
	case *route.RouteMatch_Path:
		out.Path.Kind, out.Path.Value = l7.PathExact, p.Path
	case *route.RouteMatch_PathSeparatedPrefix:
		out.Path.Kind, out.Path.Value = l7.PathSegments, p.PathSeparatedPrefix
	case *route.RouteMatch_SafeRegex:
		expression := p.SafeRegex.GetRegex()
		if out.Path.IgnoreCase {
			expression = "(?i)" + expression
		}
		r, err := regexp.Compile(expression)
		if err != nil {
			return out, err
		}
		out.Path.Kind, out.Path.Regex = l7.PathRegex, r
	default:
		return out, fmt.Errorf("path match %T is not supported", p)
	}
	var pseudo []l7.HeaderMatch
	for _, h := range m.GetHeaders() {
		match, err := headerMatch(h)
		if err != nil {
			return out, err
		}
		switch {
		case match.Name == ":method" && match.Value.Kind == l7.MatchExact && !match.Invert && !match.Present:
			out.Method = match.Value.Value
		case strings.HasPrefix(match.Name, ":") || strings.EqualFold(match.Name, "host"):
			pseudo = append(pseudo, match)
		default:
			out.Headers = append(out.Headers, match)
		}
	}
	if len(pseudo) > 0 {
		out.Func = func(x *l7.Exchange) bool { return pseudoMatch(pseudo, x) }
	}
	for _, q := range m.GetQueryParameters() {
		match := l7.QueryMatch{Name: q.GetName()}
		switch v := q.GetQueryParameterMatchSpecifier().(type) {
		case *route.QueryParameterMatcher_StringMatch:
			var err error
			if match.Value, err = stringMatch(v.StringMatch); err != nil {
				return out, err
			}
		default:
			match.Present = true
		}
		out.Query = append(out.Query, match)
	}
	out.Fraction = millionths(m.GetRuntimeFraction().GetDefaultValue())
	return out, nil
}

// pseudoMatch compares what HTTP/2 writes as headers.
func pseudoMatch(list []l7.HeaderMatch, x *l7.Exchange) bool {
	for i := range list {
		v := ""
		switch strings.ToLower(list[i].Name) {
		case ":method":
			v = x.Request.Method
		case ":scheme":
			v = x.Request.Scheme
		case ":path":
			v = x.Request.Path
		case ":authority", "host":
			v = x.Request.Authority
		}
		if !list[i].Present && list[i].Value.Matches(v) == list[i].Invert {
			return false
		}
	}
	return true
}
