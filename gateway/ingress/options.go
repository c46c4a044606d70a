package ingress

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	networkingv1 "k8s.io/api/networking/v1"

	"github.com/periplus/periplus/gateway"
	"github.com/periplus/periplus/l7"
	"github.com/periplus/periplus/l7/filter/basicauth"
	"github.com/periplus/periplus/l7/filter/cors"
	"github.com/periplus/periplus/l7/filter/headers"
	"github.com/periplus/periplus/l7/filter/ratelimit"
	"github.com/periplus/periplus/l7/filter/rbac"
)

// options are what the annotations of one Ingress mean.
type options struct {
	canary      bool
	regex       bool
	rewrite     string
	redirectTLS bool
	forceTLS    bool
	appRoot     string
	redirect    *l7.Reply
	aliases     []string

	protocol l7.Protocol
	tls      *l7.UpstreamTLS
	host     string
	connect  time.Duration
	idle     time.Duration
	body     int64
	retry    *l7.RetryPolicy
	balance  l7.Balancing
	hash     []l7.HashPolicy
	// suffix tells the clusters of these options apart from those of others.
	suffix string

	filters  []l7.Filter
	metadata map[string]string
}

// defaultIdle is nginx's proxy_read_timeout.
const defaultIdle = 60 * time.Second

func (t *translation) readOptions(i *networkingv1.Ingress) *options {
	a := annotations{i, t.wrong(i)}
	o := &options{
		canary: a.truth("canary", false), rewrite: a.text("rewrite-target"),
		redirectTLS: a.truth("ssl-redirect", true), forceTLS: a.truth("force-ssl-redirect", false),
		appRoot: a.text("app-root"), aliases: a.list("server-alias"),
		host: a.text("upstream-vhost"), connect: a.seconds("proxy-connect-timeout", 5*time.Second),
		idle: max(a.seconds("proxy-read-timeout", defaultIdle), a.seconds("proxy-send-timeout", 0)), body: a.size("proxy-body-size"),
		metadata: map[string]string{"ingress": i.Name, "namespace": i.Namespace},
	}
	o.regex = o.rewrite != "" || a.truth("use-regex", false)
	// Connections that could not be made are tried elsewhere: nothing was sent yet.
	o.retry = &l7.RetryPolicy{On: l7.RetryConnectFailure | l7.RetryRefusedStream, Attempts: max(a.number("proxy-next-upstream-tries", 3)-1, 0), BackOff: 5 * time.Millisecond}
	o.redirects(a)
	o.upstream(a)
	t.access(i, a, o)
	t.limits(i, a, o)
	o.cors(a)
	if p := a.text("x-forwarded-prefix"); p != "" {
		o.filters = append(o.filters, headers.New(headers.Change{Set: []l7.Field{{Name: "X-Forwarded-Prefix", Value: p}}}, headers.Change{}))
	}
	a.unknown()
	return o
}

func (o *options) redirects(a annotations) {
	to, code := a.text("temporal-redirect"), a.number("temporal-redirect-code", 302)
	if p := a.text("permanent-redirect"); p != "" {
		to, code = p, a.number("permanent-redirect-code", 301)
	}
	if to != "" {
		o.redirect = &l7.Reply{Status: code, Header: l7.Header{{Name: "Location", Value: to}}}
	}
}

// upstream reads how endpoints are spoken with.
func (o *options) upstream(a annotations) {
	switch p := strings.ToUpper(a.text("backend-protocol")); p {
	case "", "HTTP", "AUTO_HTTP":
	case "HTTPS":
		o.tls = &l7.UpstreamTLS{Insecure: true}
	case "GRPC":
		o.protocol = l7.ProtocolHTTP2
	case "GRPCS":
		o.protocol, o.tls = l7.ProtocolHTTP2, &l7.UpstreamTLS{Insecure: true}
	default:
		a.bad("backend-protocol", p, "HTTP, HTTPS, GRPC, GRPCS or AUTO_HTTP")
	}
	switch lb := a.text("load-balance"); lb {
	case "", "round_robin":
	case "ewma", "least_conn":
		o.balance = l7.LeastRequest
	default:
		a.bad("load-balance", lb, "round_robin or ewma")
	}
	if a.text("affinity") == "cookie" {
		p := l7.HashPolicy{Cookie: "INGRESSCOOKIE", CookiePath: "/", CookieTTL: time.Duration(a.number("session-cookie-max-age", 0)) * time.Second}
		if name := a.text("session-cookie-name"); name != "" {
			p.Cookie = name
		}
		if path := a.text("session-cookie-path"); path != "" {
			p.CookiePath = path
		}
		o.balance, o.hash = l7.RingHash, []l7.HashPolicy{p}
	} else if by := a.text("upstream-hash-by"); by != "" {
		o.hashBy(a, by)
	}
	var s []string
	if o.tls != nil {
		s = append(s, "tls")
	}
	s = append(s, fmt.Sprintf("p%d", o.protocol), fmt.Sprintf("b%d", o.balance), o.connect.String())
	o.suffix = strings.Join(s, ",")
}

// hashBy reads a variable of nginx.
func (o *options) hashBy(a annotations, by string) {
	var p l7.HashPolicy
	switch {
	case by == "$remote_addr" || by == "$binary_remote_addr":
		p.SourceIP = true
	case strings.HasPrefix(by, "$http_"):
		p.Header = strings.ReplaceAll(strings.TrimPrefix(by, "$http_"), "_", "-")
	case strings.HasPrefix(by, "$arg_"):
		p.Query = strings.TrimPrefix(by, "$arg_")
	case strings.HasPrefix(by, "$cookie_"):
		p.Cookie, p.CookieTTL = strings.TrimPrefix(by, "$cookie_"), -1
	default:
		a.bad("upstream-hash-by", by, "one of $remote_addr, $http_NAME, $arg_NAME, $cookie_NAME")
		return
	}
	o.balance, o.hash = l7.RingHash, []l7.HashPolicy{p}
}

// access reads who may come in: addresses and passwords.
func (t *translation) access(i *networkingv1.Ingress, a annotations, o *options) {
	allow := append(prefixes(a, "whitelist-source-range"), prefixes(a, "allowlist-source-range")...)
	if len(allow) > 0 {
		o.filters = append(o.filters, &rbac.Filter{Action: rbac.Allow, Policies: []rbac.Policy{{Name: "source-range", Principal: rbac.RemoteIP(allow...)}}})
	}
	if deny := prefixes(a, "denylist-source-range"); len(deny) > 0 {
		o.filters = append(o.filters, &rbac.Filter{Action: rbac.Deny, Policies: []rbac.Policy{{Name: "source-range", Principal: rbac.RemoteIP(deny...)}}})
	}
	switch kind := a.text("auth-type"); kind {
	case "":
	case "basic":
		o.filters = append(o.filters, t.passwords(i, a))
	default:
		a.bad("auth-type", kind, "basic")
		o.filters = append(o.filters, closed())
	}
}

// passwords reads the Secret of basic authentication. Without it nobody gets in.
func (t *translation) passwords(i *networkingv1.Ingress, a annotations) l7.Filter {
	namespace, name := i.Namespace, a.text("auth-secret")
	if ns, n, ok := strings.Cut(name, "/"); ok {
		if ns != namespace {
			a.wrong("InvalidAnnotation", prefix+"auth-secret: a Secret of another namespace is not used")
			return closed()
		}
		name = n
	}
	s, err := t.build.Secret(namespace, name)
	if err != nil {
		a.wrong("SecretNotFound", err.Error()+": nobody gets in")
		return closed()
	}
	var users strings.Builder
	if a.text("auth-secret-type") == "auth-map" {
		for user, hash := range s.Data {
			users.WriteString(user + ":" + string(hash) + "\n")
		}
	} else {
		users.Write(s.Data["auth"])
	}
	realm := a.text("auth-realm")
	if realm == "" {
		realm = "Authentication Required"
	}
	return basicauth.New(realm, users.String())
}

func closed() l7.Filter {
	return l7.FilterFunc(func(*l7.Exchange) *l7.Reply {
		return &l7.Reply{Status: 503, Body: "503 Service Temporarily Unavailable", Flag: l7.FlagDenied, Details: "authentication_not_configured"}
	})
}

// limits reads rate limits: one bucket for each client's address.
func (t *translation) limits(i *networkingv1.Ingress, a annotations, o *options) {
	rate := float64(a.number("limit-rps", 0))
	if rate == 0 {
		rate = float64(a.number("limit-rpm", 0)) / 60
	}
	if rate == 0 {
		return
	}
	perName := "ingress/" + string(i.UID)
	burst := int(max(rate, 1)) * max(a.number("limit-burst-multiplier", 5), 1)
	f := &ratelimit.Filter{Limiter: t.build.Limiter(perName, rate, burst), Key: ratelimit.ClientAddress, Status: 503}
	if free := append(prefixes(a, "limit-whitelist"), prefixes(a, "limit-allowlist")...); len(free) > 0 {
		f.Match = func(x *l7.Exchange) bool {
			return !slices.ContainsFunc(free, func(p netip.Prefix) bool { return p.Contains(x.Client) })
		}
	}
	o.filters = append(o.filters, f)
}

func (o *options) cors(a annotations) {
	if !a.truth("enable-cors", false) {
		return
	}
	f := &cors.Filter{
		Methods: a.list("cors-allow-methods"), Headers: a.list("cors-allow-headers"), Expose: a.list("cors-expose-headers"),
		Credentials: a.truth("cors-allow-credentials", true), MaxAge: a.seconds("cors-max-age", 1728000*time.Second),
	}
	if len(f.Methods) == 0 {
		f.Methods = []string{"GET", "PUT", "POST", "DELETE", "PATCH", "OPTIONS"}
	}
	if len(f.Headers) == 0 {
		f.Headers = strings.Split("DNT,Keep-Alive,User-Agent,X-Requested-With,If-Modified-Since,Cache-Control,Content-Type,Range,Authorization", ",")
	}
	origins := a.list("cors-allow-origin")
	if len(origins) == 0 || slices.Contains(origins, "*") {
		f.AnyOrigin = true
		f.Origins = []l7.StringMatch{{}}
	}
	for _, origin := range origins {
		scheme, host, ok := strings.Cut(origin, "://*.")
		if !ok {
			f.Origins = append(f.Origins, l7.StringMatch{Kind: l7.MatchExact, Value: origin})
			continue
		}
		e, err := l7.Anchored(scheme + `://[A-Za-z0-9-]+\.` + strings.ReplaceAll(host, ".", `\.`))
		if err != nil {
			a.bad("cors-allow-origin", origin, "an origin like https://*.example.com")
			continue
		}
		f.Origins = append(f.Origins, l7.StringMatch{Kind: l7.MatchRegex, Regex: e})
	}
	o.filters = append(o.filters, f)
}

func prefixes(a annotations, name string) []netip.Prefix {
	var out []netip.Prefix
	for _, s := range a.list(name) {
		if p, err := netip.ParsePrefix(s); err == nil {
			out = append(out, p)
		} else if addr, err := netip.ParseAddr(s); err == nil {
			out = append(out, netip.PrefixFrom(addr, addr.BitLen()))
		} else {
			a.bad(name, s, "a range like 10.0.0.0/8")
			// Nobody is better than everybody.
			out = append(out, netip.PrefixFrom(netip.IPv6Loopback(), 128))
		}
	}
	return out
}

// forward makes the way to a backend.
func (t *translation) forward(i *networkingv1.Ingress, b *networkingv1.IngressBackend, o *options, path string) (*l7.Forward, error) {
	if b.Service == nil {
		return nil, fmt.Errorf("a backend that is no Service is not supported")
	}
	port := gateway.ServicePort{Number: b.Service.Port.Number, Name: b.Service.Port.Name}
	cluster, err := t.build.Cluster(i.Namespace, b.Service.Name, port, o.suffix, l7.Cluster{
		Balancing: o.balance, Protocol: o.protocol, TLS: o.tls, ConnectTimeout: o.connect,
	})
	if err != nil {
		return nil, err
	}
	f := &l7.Forward{Cluster: cluster, IdleTimeout: o.idle, MaxBodyBytes: o.body, Retry: o.retry, Hash: o.hash, Host: o.host}
	if o.rewrite != "" {
		if f.Path, err = rewrite(path, o.rewrite); err != nil {
			return nil, err
		}
	}
	return f, nil
}
