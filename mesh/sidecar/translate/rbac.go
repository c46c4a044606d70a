package translate

import (
	"fmt"
	"maps"
	"slices"

	rbacv3 "github.com/envoyproxy/go-control-plane/envoy/config/rbac/v3"

	"github.com/periplus/periplus/l7/filter/rbac"
)

// access makes a filter of rules; nil: there are none.
func access(m *rbacv3.RBAC) (*rbac.Filter, error) {
	if m == nil {
		return nil, nil
	}
	out := &rbac.Filter{}
	switch m.GetAction() {
	case rbacv3.RBAC_DENY:
		out.Action = rbac.Deny
	case rbacv3.RBAC_LOG:
		out.Action = rbac.Log
	}
	for _, name := range slices.Sorted(maps.Keys(m.GetPolicies())) {
		p := m.GetPolicies()[name]
		if p.GetCondition() != nil {
			return nil, fmt.Errorf("policy %s: CEL conditions are not supported", name)
		}
		permission, err := anyOf(p.GetPermissions(), permission)
		if err != nil {
			return nil, fmt.Errorf("policy %s: %w", name, err)
		}
		principal, err := anyOf(p.GetPrincipals(), principal)
		if err != nil {
			return nil, fmt.Errorf("policy %s: %w", name, err)
		}
		out.Policies = append(out.Policies, rbac.Policy{Name: name, Permission: permission, Principal: principal})
	}
	return out, nil
}

func each[T any](list []T, compile func(T) (rbac.Matcher, error)) ([]rbac.Matcher, error) {
	out := make([]rbac.Matcher, 0, len(list))
	for _, x := range list {
		m, err := compile(x)
		if err != nil {
			return nil, err
		}
		out = append(out, m)
	}
	return out, nil
}

func anyOf[T any](list []T, compile func(T) (rbac.Matcher, error)) (rbac.Matcher, error) {
	m, err := each(list, compile)
	if err != nil {
		return nil, err
	}
	if len(m) == 1 {
		return m[0], nil
	}
	return rbac.Or(m...), nil
}

func allOf[T any](list []T, compile func(T) (rbac.Matcher, error)) (rbac.Matcher, error) {
	m, err := each(list, compile)
	if err != nil {
		return nil, err
	}
	return rbac.And(m...), nil
}

func permission(p *rbacv3.Permission) (rbac.Matcher, error) {
	switch r := p.GetRule().(type) {
	case *rbacv3.Permission_Any:
		return rbac.Any, nil
	case *rbacv3.Permission_AndRules:
		return allOf(r.AndRules.GetRules(), permission)
	case *rbacv3.Permission_OrRules:
		return anyOf(r.OrRules.GetRules(), permission)
	case *rbacv3.Permission_NotRule:
		m, err := permission(r.NotRule)
		if err != nil {
			return nil, err
		}
		return rbac.Not(m), nil
	case *rbacv3.Permission_Header:
		h, err := headerMatch(r.Header)
		return rbac.Header(h), err
	case *rbacv3.Permission_UrlPath:
		m, err := stringMatch(r.UrlPath.GetPath())
		return rbac.Path(m), err
	case *rbacv3.Permission_DestinationPort:
		return rbac.DestinationPort(uint16(r.DestinationPort)), nil
	case *rbacv3.Permission_DestinationIp:
		prefix, err := prefixOf(r.DestinationIp)
		return rbac.DestinationIP(prefix), err
	case *rbacv3.Permission_RequestedServerName:
		m, err := stringMatch(r.RequestedServerName)
		return rbac.ServerName(m), err
	}
	return nil, fmt.Errorf("permission %T is not supported", p.GetRule())
}

func principal(p *rbacv3.Principal) (rbac.Matcher, error) {
	switch r := p.GetIdentifier().(type) {
	case *rbacv3.Principal_Any:
		return rbac.Any, nil
	case *rbacv3.Principal_AndIds:
		return allOf(r.AndIds.GetIds(), principal)
	case *rbacv3.Principal_OrIds:
		return anyOf(r.OrIds.GetIds(), principal)
	case *rbacv3.Principal_NotId:
		m, err := principal(r.NotId)
		if err != nil {
			return nil, err
		}
		return rbac.Not(m), nil
	case *rbacv3.Principal_Authenticated_:
		if r.Authenticated.GetPrincipalName() == nil {
			return rbac.Authenticated, nil
		}
		m, err := stringMatch(r.Authenticated.GetPrincipalName())
		return rbac.Principal(m), err
	case *rbacv3.Principal_DirectRemoteIp:
		prefix, err := prefixOf(r.DirectRemoteIp)
		return rbac.SourceIP(prefix), err
	case *rbacv3.Principal_RemoteIp:
		prefix, err := prefixOf(r.RemoteIp)
		return rbac.RemoteIP(prefix), err
	case *rbacv3.Principal_Header:
		h, err := headerMatch(r.Header)
		return rbac.Header(h), err
	}
	return nil, fmt.Errorf("principal %T is not supported", p.GetIdentifier())
}
