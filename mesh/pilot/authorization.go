package pilot

import (
	"fmt"
	"net/netip"
	"regexp"
	"strconv"
	"strings"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	rbacv3 "github.com/envoyproxy/go-control-plane/envoy/config/rbac/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	matcher "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
	"google.golang.org/protobuf/types/known/wrapperspb"
	security "istio.io/api/security/v1beta1"

	"github.com/periplus/periplus/mesh"
	"github.com/periplus/periplus/mesh/config"
)

// authorization is what a workload's policies come to, in the order in which they
// are asked: CUSTOM, DENY, ALLOW. Each is nil if there is no policy of it.
type authorization []*rbacv3.RBAC

// authorizationOf compiles the policies of a workload. On plain TCP what only HTTP
// has counts as matched when it would deny, and as not matched when it would allow.
func (w *World) authorizationOf(namespace string, labels map[string]string, tcp bool) authorization {
	byAction := map[security.AuthorizationPolicy_Action][]*config.AuthorizationPolicy{}
	for _, p := range w.policies {
		if p.Namespace != mesh.RootNamespace && p.Namespace != namespace || !subsetOf(p.Spec.GetSelector().GetMatchLabels(), labels) {
			continue
		}
		byAction[p.Spec.GetAction()] = append(byAction[p.Spec.GetAction()], p)
	}
	var out authorization
	// Without a provider to ask, a CUSTOM policy denies what it matches.
	for _, a := range []security.AuthorizationPolicy_Action{security.AuthorizationPolicy_CUSTOM, security.AuthorizationPolicy_DENY} {
		if list := byAction[a]; len(list) > 0 {
			out = append(out, &rbacv3.RBAC{Action: rbacv3.RBAC_DENY, Policies: compilePolicies(list, tcp, true)})
		}
	}
	if list := byAction[security.AuthorizationPolicy_ALLOW]; len(list) > 0 {
		// No rule allows nothing.
		out = append(out, &rbacv3.RBAC{Action: rbacv3.RBAC_ALLOW, Policies: compilePolicies(list, tcp, false)})
	}
	return out
}

func compilePolicies(list []*config.AuthorizationPolicy, tcp, deny bool) map[string]*rbacv3.Policy {
	out := map[string]*rbacv3.Policy{}
	for _, p := range list {
		for i, r := range p.Spec.GetRules() {
			c := ruleCompiler{namespace: p.Namespace, tcp: tcp, deny: deny}
			if compiled := c.rule(r); compiled != nil {
				out[fmt.Sprintf("ns[%s]-policy[%s]-rule[%d]", p.Namespace, p.Name, i)] = compiled
			}
		}
	}
	return out
}

// A ruleCompiler turns one rule into a policy of Envoy's: one of the permissions and
// one of the principals must match.
type ruleCompiler struct {
	namespace string // of the policy
	tcp, deny bool
	never     bool // an attribute that cannot match
}

// http reports whether an attribute of HTTP is to be compiled; if not, it counts as
// matched or the rule never matches.
func (c *ruleCompiler) http() bool {
	if c.tcp && !c.deny {
		c.never = true
	}
	return !c.tcp
}

// rule returns nil for one that never matches.
func (c *ruleCompiler) rule(r *security.Rule) *rbacv3.Policy {
	whenPrincipals, whenPermissions := c.conditions(r.GetWhen())
	if c.never {
		return nil
	}
	out := &rbacv3.Policy{}
	for _, f := range r.GetFrom() {
		c.never = false
		ids := append(c.source(f.GetSource()), whenPrincipals...)
		if !c.never {
			out.Principals = append(out.Principals, allPrincipals(ids))
		}
	}
	if len(r.GetFrom()) == 0 {
		out.Principals = append(out.Principals, allPrincipals(whenPrincipals))
	}
	for _, t := range r.GetTo() {
		c.never = false
		rules := append(c.operation(t.GetOperation()), whenPermissions...)
		if !c.never {
			out.Permissions = append(out.Permissions, allPermissions(rules))
		}
	}
	if len(r.GetTo()) == 0 {
		out.Permissions = append(out.Permissions, allPermissions(whenPermissions))
	}
	if len(out.Principals) == 0 || len(out.Permissions) == 0 {
		return nil
	}
	return out
}

func (c *ruleCompiler) source(s *security.Source) []*rbacv3.Principal {
	var out []*rbacv3.Principal
	add := func(values, not []string, make func(string) *rbacv3.Principal) {
		if len(values) > 0 {
			out = append(out, anyPrincipal(values, make))
		}
		if len(not) > 0 {
			out = append(out, &rbacv3.Principal{Identifier: &rbacv3.Principal_NotId{NotId: anyPrincipal(not, make)}})
		}
	}
	add(s.GetPrincipals(), s.GetNotPrincipals(), principalNamed)
	add(s.GetNamespaces(), s.GetNotNamespaces(), principalIn)
	add(s.GetServiceAccounts(), s.GetNotServiceAccounts(), c.account)
	add(s.GetTrustDomains(), s.GetNotTrustDomains(), func(v string) *rbacv3.Principal { return authenticated(prefix("spiffe://" + v + "/")) })
	add(s.GetIpBlocks(), s.GetNotIpBlocks(), func(v string) *rbacv3.Principal {
		return &rbacv3.Principal{Identifier: &rbacv3.Principal_DirectRemoteIp{DirectRemoteIp: cidr(v)}}
	})
	add(s.GetRemoteIpBlocks(), s.GetNotRemoteIpBlocks(), func(v string) *rbacv3.Principal {
		return &rbacv3.Principal{Identifier: &rbacv3.Principal_RemoteIp{RemoteIp: cidr(v)}}
	})
	// Nobody has a token of a user that was verified: no request has such a principal.
	if len(s.GetRequestPrincipals()) > 0 && c.http() {
		c.never = true
	}
	if len(s.GetNotRequestPrincipals()) > 0 {
		c.http()
	}
	return out
}

func (c *ruleCompiler) operation(o *security.Operation) []*rbacv3.Permission {
	var out []*rbacv3.Permission
	add := func(values, not []string, http bool, make func(string) *rbacv3.Permission) {
		if len(values)+len(not) == 0 || http && !c.http() {
			return
		}
		if len(values) > 0 {
			out = append(out, anyPermission(values, make))
		}
		if len(not) > 0 {
			out = append(out, &rbacv3.Permission{Rule: &rbacv3.Permission_NotRule{NotRule: anyPermission(not, make)}})
		}
	}
	add(o.GetHosts(), o.GetNotHosts(), true, func(v string) *rbacv3.Permission { return permissionHeader(":authority", hostMatch(v)) })
	add(o.GetMethods(), o.GetNotMethods(), true, func(v string) *rbacv3.Permission { return permissionHeader(":method", wildcard(v, "")) })
	add(o.GetPaths(), o.GetNotPaths(), true, func(v string) *rbacv3.Permission {
		return &rbacv3.Permission{Rule: &rbacv3.Permission_UrlPath{UrlPath: &matcher.PathMatcher{Rule: &matcher.PathMatcher_Path{Path: pathMatch(v)}}}}
	})
	add(o.GetPorts(), o.GetNotPorts(), false, portPermission)
	return out
}

// conditions are the "when" of a rule.
func (c *ruleCompiler) conditions(list []*security.Condition) (who []*rbacv3.Principal, what []*rbacv3.Permission) {
	for _, w := range list {
		key := w.GetKey()
		principal := func(make func(string) *rbacv3.Principal) {
			if len(w.GetValues()) > 0 {
				who = append(who, anyPrincipal(w.GetValues(), make))
			}
			if len(w.GetNotValues()) > 0 {
				who = append(who, &rbacv3.Principal{Identifier: &rbacv3.Principal_NotId{NotId: anyPrincipal(w.GetNotValues(), make)}})
			}
		}
		permission := func(make func(string) *rbacv3.Permission) {
			if len(w.GetValues()) > 0 {
				what = append(what, anyPermission(w.GetValues(), make))
			}
			if len(w.GetNotValues()) > 0 {
				what = append(what, &rbacv3.Permission{Rule: &rbacv3.Permission_NotRule{NotRule: anyPermission(w.GetNotValues(), make)}})
			}
		}
		switch {
		case key == "source.ip":
			principal(func(v string) *rbacv3.Principal {
				return &rbacv3.Principal{Identifier: &rbacv3.Principal_DirectRemoteIp{DirectRemoteIp: cidr(v)}}
			})
		case key == "remote.ip":
			principal(func(v string) *rbacv3.Principal {
				return &rbacv3.Principal{Identifier: &rbacv3.Principal_RemoteIp{RemoteIp: cidr(v)}}
			})
		case key == "source.namespace":
			principal(principalIn)
		case key == "source.principal":
			principal(principalNamed)
		case key == "source.serviceAccount":
			principal(c.account)
		case key == "destination.ip":
			permission(func(v string) *rbacv3.Permission {
				return &rbacv3.Permission{Rule: &rbacv3.Permission_DestinationIp{DestinationIp: cidr(v)}}
			})
		case key == "destination.port":
			permission(portPermission)
		case key == "connection.sni":
			permission(func(v string) *rbacv3.Permission {
				return &rbacv3.Permission{Rule: &rbacv3.Permission_RequestedServerName{RequestedServerName: wildcard(v, "")}}
			})
		case strings.HasPrefix(key, "request.headers["):
			if name := strings.TrimSuffix(strings.TrimPrefix(key, "request.headers["), "]"); c.http() {
				permission(func(v string) *rbacv3.Permission { return permissionHeader(name, wildcard(v, "")) })
			}
		case strings.HasPrefix(key, "request.auth."):
			if c.http() && len(w.GetValues()) > 0 {
				c.never = true // as for requestPrincipals
			}
		}
	}
	return who, what
}

// principalNamed is a SPIFFE ID without its scheme, with a wildcard at one end.
func principalNamed(v string) *rbacv3.Principal { return authenticated(wildcard(v, "spiffe://")) }

// principalIn is a namespace.
func principalIn(v string) *rbacv3.Principal {
	return authenticated(regex(".*/ns/" + strings.ReplaceAll(regexp.QuoteMeta(v), `\*`, ".*") + "/.*"))
}

// account is "name" or "namespace/name".
func (c *ruleCompiler) account(v string) *rbacv3.Principal {
	namespace, name, ok := strings.Cut(v, "/")
	if !ok {
		namespace, name = c.namespace, v
	}
	return authenticated(regex("spiffe://[^/]+/ns/" + regexp.QuoteMeta(namespace) + "/sa/" + regexp.QuoteMeta(name)))
}

func authenticated(m *matcher.StringMatcher) *rbacv3.Principal {
	return &rbacv3.Principal{Identifier: &rbacv3.Principal_Authenticated_{Authenticated: &rbacv3.Principal_Authenticated{PrincipalName: m}}}
}

// wildcard compiles "*", "a*", "*a" and "a"; scheme comes before what is not open at its beginning.
func wildcard(v, scheme string) *matcher.StringMatcher {
	switch {
	case v == "*":
		return regex(".+")
	case strings.HasPrefix(v, "*"):
		return suffix(v[1:])
	case strings.HasSuffix(v, "*"):
		return prefix(scheme + v[:len(v)-1])
	}
	return exact(scheme + v)
}

// hostMatch compares without regard to case and to the port.
func hostMatch(v string) *matcher.StringMatcher {
	if v == "*" {
		return regex(".+")
	}
	port := `(:\d+)?`
	if strings.Contains(v, ":") {
		port = ""
	}
	return regex("(?i)" + strings.ReplaceAll(regexp.QuoteMeta(v), `\*`, ".*") + port)
}

// pathMatch knows templates besides wildcards: {*} is a segment, {**} any number of them.
func pathMatch(v string) *matcher.StringMatcher {
	if !strings.Contains(v, "{*}") && !strings.Contains(v, "{**}") {
		return wildcard(v, "")
	}
	q := regexp.QuoteMeta(v)
	q = strings.ReplaceAll(q, regexp.QuoteMeta("{**}"), ".*")
	return regex(strings.ReplaceAll(q, regexp.QuoteMeta("{*}"), "[^/]+"))
}

func permissionHeader(name string, m *matcher.StringMatcher) *rbacv3.Permission {
	return &rbacv3.Permission{Rule: &rbacv3.Permission_Header{Header: &routev3.HeaderMatcher{
		Name: name, HeaderMatchSpecifier: &routev3.HeaderMatcher_StringMatch{StringMatch: m},
	}}}
}

func portPermission(v string) *rbacv3.Permission {
	n, _ := strconv.Atoi(v) // checked when the object was made; 0 matches nothing
	return &rbacv3.Permission{Rule: &rbacv3.Permission_DestinationPort{DestinationPort: uint32(n)}}
}

func cidr(v string) *core.CidrRange {
	if p, err := netip.ParsePrefix(v); err == nil {
		return &core.CidrRange{AddressPrefix: p.Masked().Addr().String(), PrefixLen: wrapperspb.UInt32(uint32(p.Bits()))}
	}
	bits := 32
	if strings.Contains(v, ":") {
		bits = 128
	}
	return &core.CidrRange{AddressPrefix: v, PrefixLen: u32(bits)}
}

func anyPrincipal(values []string, make func(string) *rbacv3.Principal) *rbacv3.Principal {
	if len(values) == 1 {
		return make(values[0])
	}
	s := &rbacv3.Principal_Set{}
	for _, v := range values {
		s.Ids = append(s.Ids, make(v))
	}
	return &rbacv3.Principal{Identifier: &rbacv3.Principal_OrIds{OrIds: s}}
}

func allPrincipals(list []*rbacv3.Principal) *rbacv3.Principal {
	switch len(list) {
	case 0:
		return &rbacv3.Principal{Identifier: &rbacv3.Principal_Any{Any: true}}
	case 1:
		return list[0]
	}
	return &rbacv3.Principal{Identifier: &rbacv3.Principal_AndIds{AndIds: &rbacv3.Principal_Set{Ids: list}}}
}

func anyPermission(values []string, make func(string) *rbacv3.Permission) *rbacv3.Permission {
	if len(values) == 1 {
		return make(values[0])
	}
	s := &rbacv3.Permission_Set{}
	for _, v := range values {
		s.Rules = append(s.Rules, make(v))
	}
	return &rbacv3.Permission{Rule: &rbacv3.Permission_OrRules{OrRules: s}}
}

func allPermissions(list []*rbacv3.Permission) *rbacv3.Permission {
	switch len(list) {
	case 0:
		return &rbacv3.Permission{Rule: &rbacv3.Permission_Any{Any: true}}
	case 1:
		return list[0]
	}
	return &rbacv3.Permission{Rule: &rbacv3.Permission_AndRules{AndRules: &rbacv3.Permission_Set{Rules: list}}}
}
