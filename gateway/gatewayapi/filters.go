package gatewayapi

import (
	"fmt"
	"strings"
	"time"

	"k8s.io/utils/ptr"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/periplus/periplus/l7"
	"github.com/periplus/periplus/l7/filter/cors"
	"github.com/periplus/periplus/l7/filter/headers"
)

// filtered is what a list of filters means.
type filtered struct {
	filters  []l7.Filter
	redirect *l7.Redirect
	path     *l7.PathRewrite
	host     string
	mirrors  []l7.Mirror
	broken   string // why requests are answered with 500
}

func (st *state) filters(r *routeState, list []gatewayv1.HTTPRouteFilter, l *listener) filtered {
	var out filtered
	for i := range list {
		f := &list[i]
		switch f.Type {
		case gatewayv1.HTTPRouteFilterRequestHeaderModifier:
			out.filters = append(out.filters, headers.New(change(f.RequestHeaderModifier), headers.Change{}))
		case gatewayv1.HTTPRouteFilterResponseHeaderModifier:
			out.filters = append(out.filters, headers.New(headers.Change{}, change(f.ResponseHeaderModifier)))
		case gatewayv1.HTTPRouteFilterRequestRedirect:
			out.redirect = redirect(f.RequestRedirect, l)
		case gatewayv1.HTTPRouteFilterURLRewrite:
			if f.URLRewrite != nil {
				out.path = pathRewrite(f.URLRewrite.Path)
				out.host = string(ptr.Deref(f.URLRewrite.Hostname, ""))
			}
		case gatewayv1.HTTPRouteFilterRequestMirror:
			if m := f.RequestMirror; m != nil {
				name, p := st.backend(r, &m.BackendRef, "", l7.Cluster{})
				if p.reason != "" {
					r.unresolved(p)
					continue
				}
				out.mirrors = append(out.mirrors, mirror(m, name)...)
			}
		case gatewayv1.HTTPRouteFilterCORS:
			if f.CORS != nil {
				out.filters = append(out.filters, corsFilter(f.CORS))
			}
		default:
			// A filter that is not carried out must not be skipped.
			r.refuse(fmt.Sprintf("Filters of type %s are not supported", f.Type))
			out.broken = "unsupported_filter"
		}
	}
	return out
}

func change(f *gatewayv1.HTTPHeaderFilter) headers.Change {
	var out headers.Change
	if f == nil {
		return out
	}
	out.Remove = f.Remove
	for _, h := range f.Set {
		out.Set = append(out.Set, l7.Field{Name: string(h.Name), Value: h.Value})
	}
	for _, h := range f.Add {
		out.Add = append(out.Add, l7.Field{Name: string(h.Name), Value: h.Value})
	}
	return out
}

func pathRewrite(m *gatewayv1.HTTPPathModifier) *l7.PathRewrite {
	switch {
	case m == nil:
		return nil
	case m.Type == gatewayv1.FullPathHTTPPathModifier:
		return &l7.PathRewrite{Full: m.ReplaceFullPath}
	default:
		return &l7.PathRewrite{Prefix: m.ReplacePrefixMatch}
	}
}

func redirect(f *gatewayv1.HTTPRequestRedirectFilter, l *listener) *l7.Redirect {
	if f == nil {
		return nil
	}
	out := &l7.Redirect{
		Scheme: ptr.Deref(f.Scheme, ""), Host: string(ptr.Deref(f.Hostname, "")), Port: int(ptr.Deref(f.Port, 0)),
		Code: ptr.Deref(f.StatusCode, 302), Path: pathRewrite(f.Path),
	}
	switch {
	case out.Port != 0 || l == nil:
	case out.Scheme == "http":
		out.Port = 80
	case out.Scheme == "https":
		out.Port = 443
	default:
		out.Port = int(l.Port)
	}
	return out
}

func mirror(m *gatewayv1.HTTPRequestMirrorFilter, cluster string) []l7.Mirror {
	out := l7.Mirror{Cluster: cluster}
	part := int64(1_000_000)
	switch {
	case m.Percent != nil:
		part = int64(*m.Percent) * 10_000
	case m.Fraction != nil:
		part = int64(m.Fraction.Numerator) * 1_000_000 / int64(max(ptr.Deref(m.Fraction.Denominator, 100), 1))
	}
	if part <= 0 {
		return nil
	}
	out.Fraction = uint32(min(part, 1_000_000))
	return []l7.Mirror{out}
}

func corsFilter(c *gatewayv1.HTTPCORSFilter) l7.Filter {
	f := &cors.Filter{Credentials: ptr.Deref(c.AllowCredentials, false), MaxAge: time.Duration(c.MaxAge) * time.Second}
	for _, m := range c.AllowMethods {
		f.Methods = append(f.Methods, string(m))
	}
	for _, h := range c.AllowHeaders {
		f.Headers = append(f.Headers, string(h))
	}
	for _, h := range c.ExposeHeaders {
		f.Expose = append(f.Expose, string(h))
	}
	for _, o := range c.AllowOrigins {
		text := string(o)
		switch scheme, host, wild := strings.Cut(text, "://*"); {
		case text == "*":
			f.AnyOrigin = true
			f.Origins = append(f.Origins, l7.StringMatch{})
		case wild:
			e, err := l7.Anchored(scheme + "://.*" + strings.ReplaceAll(host, ".", `\.`))
			if err == nil {
				f.Origins = append(f.Origins, l7.StringMatch{Kind: l7.MatchRegex, Regex: e})
			}
		default:
			f.Origins = append(f.Origins, l7.StringMatch{Kind: l7.MatchExact, Value: text})
		}
	}
	return f
}
