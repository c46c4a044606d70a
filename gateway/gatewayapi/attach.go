package gatewayapi

import (
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// A routeState is a route with the parents that are ours.
type routeState struct {
	object     metav1.Object
	kind       string
	resource   schema.GroupVersionResource
	hostnames  []string
	parentRefs []gatewayv1.ParentReference
	status     *gatewayv1.RouteStatus
	rules      []rule
	order      int // among all routes, by age

	parents []parentState
	// refs is the first problem with a reference, refused one with a value.
	refs, refused problem
}

// A parentState is what became of one parentRef.
type parentState struct {
	ref         gatewayv1.ParentReference
	notAccepted problem
}

// collectRoutes reads the routes and attaches them.
func (s *Source) collectRoutes(st *state) {
	var all []*routeState
	for _, o := range s.objects(httpRoutes) {
		if h, ok := o.(*gatewayv1.HTTPRoute); ok {
			all = append(all, &routeState{object: h, kind: "HTTPRoute", resource: httpRoutes, hostnames: names(h.Spec.Hostnames), parentRefs: h.Spec.ParentRefs, status: &h.Status.RouteStatus, rules: httpRules(h)})
		}
	}
	for _, o := range s.objects(grpcRoutes) {
		if g, ok := o.(*gatewayv1.GRPCRoute); ok {
			all = append(all, &routeState{object: g, kind: "GRPCRoute", resource: grpcRoutes, hostnames: names(g.Spec.Hostnames), parentRefs: g.Spec.ParentRefs, status: &g.Status.RouteStatus, rules: grpcRules(g)})
		}
	}
	for i, r := range all {
		r.order = i
		if s.attach(st, r) {
			st.routes = append(st.routes, r)
		}
	}
}

func names(h []gatewayv1.Hostname) []string {
	out := make([]string, 0, len(h))
	for _, n := range h {
		out = append(out, strings.ToLower(string(n)))
	}
	return out
}

// attach puts a route to the listeners of its parents; false: it has no parent of ours.
func (s *Source) attach(st *state, r *routeState) bool {
	type place struct {
		listener *listener
		host     string
	}
	var places []place
	for _, ref := range r.parentRefs {
		g := st.parent(&ref, r.object.GetNamespace())
		if g == nil {
			continue
		}
		p := parentState{ref: ref}
		matched, allowed, hosted := false, false, false
		for _, l := range g.listeners {
			if ref.SectionName != nil && *ref.SectionName != l.Name || ref.Port != nil && *ref.Port != l.Port {
				continue
			}
			matched = true
			if !l.allowsKind(r.kind) || !s.allowsNamespace(l, r.object.GetNamespace()) {
				continue
			}
			allowed = true
			hosts := intersect(l.hostname, r.hostnames)
			if len(hosts) == 0 {
				continue
			}
			hosted = true
			l.attached++
			if !l.valid() {
				continue
			}
			for _, h := range hosts {
				if !l.isolated(st, h) {
					places = append(places, place{l, h})
				}
			}
		}
		switch {
		case !matched:
			p.notAccepted = problem{string(gatewayv1.RouteReasonNoMatchingParent), "No listener of the Gateway has this name and port"}
		case !allowed:
			p.notAccepted = problem{string(gatewayv1.RouteReasonNotAllowedByListeners), "No listener of the Gateway allows routes of this kind from this namespace"}
		case !hosted:
			p.notAccepted = problem{string(gatewayv1.RouteReasonNoMatchingListenerHostname), "No hostname of the route matches one of a listener"}
		}
		r.parents = append(r.parents, p)
	}
	if len(r.parents) == 0 {
		return false
	}
	done := map[string]bool{}
	if len(places) == 0 {
		st.compile(r, nil) // for its references
	}
	byPort := map[*listener][]ranked{}
	for _, p := range places {
		key := fmt.Sprint(p.listener.Port, "/", p.host)
		if done[key] {
			continue // two parentRefs lead to the same place
		}
		done[key] = true
		routes, ok := byPort[p.listener]
		if !ok {
			routes = st.compile(r, p.listener)
			byPort[p.listener] = routes
		}
		h := p.listener.port.Host(p.host)
		for _, x := range routes {
			h.Add(x.route, x.rank...)
		}
	}
	return true
}

// parent finds the Gateway of ours that a reference means.
func (st *state) parent(ref *gatewayv1.ParentReference, namespace string) *gatewayState {
	if ref.Group != nil && *ref.Group != gatewayv1.GroupName || ref.Kind != nil && *ref.Kind != "Gateway" {
		return nil
	}
	if ref.Namespace != nil {
		namespace = string(*ref.Namespace)
	}
	for _, g := range st.gateways {
		if g.Namespace == namespace && g.Name == string(ref.Name) {
			return g
		}
	}
	return nil
}

func (s *Source) allowsNamespace(l *listener, namespace string) bool {
	from := gatewayv1.NamespacesFromSame
	if l.AllowedRoutes != nil && l.AllowedRoutes.Namespaces != nil && l.AllowedRoutes.Namespaces.From != nil {
		from = *l.AllowedRoutes.Namespaces.From
	}
	switch from {
	case gatewayv1.NamespacesFromAll:
		return true
	case gatewayv1.NamespacesFromSame:
		return namespace == l.gateway.Namespace
	case gatewayv1.NamespacesFromSelector:
		selector, err := metav1.LabelSelectorAsSelector(l.AllowedRoutes.Namespaces.Selector)
		if err != nil {
			return false
		}
		set, err := s.namespaceLabels(namespace)
		return err == nil && selector.Matches(labels.Set(set))
	default:
		return false
	}
}
