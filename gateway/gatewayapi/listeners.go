package gatewayapi

import (
	"fmt"
	"slices"
	"strings"

	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/periplus/periplus/gateway"
)

// A state is what one Build has found; Report writes it down.
type state struct {
	build    *gateway.Build
	gateways []*gatewayState
	routes   []*routeState
	grants   []*gatewayv1.ReferenceGrant
}

// A gatewayState is a Gateway of ours.
type gatewayState struct {
	*gatewayv1.Gateway
	listeners []*listener
	// refused is why the whole Gateway cannot be served; empty: it can.
	refused, message string
}

// A listener is one of a Gateway.
type listener struct {
	*gatewayv1.Listener
	gateway  *gatewayState
	hostname string // in lower case; empty: all
	kinds    []gatewayv1.RouteGroupKind
	attached int32
	port     *gateway.Port // nil: it cannot be served

	// Conditions: reasons of what is wrong; empty: nothing.
	notAccepted, conflicted, unresolved problem
}

type problem struct{ reason, message string }

// valid reports whether routes can be served through it.
func (l *listener) valid() bool {
	return l.notAccepted.reason == "" && l.conflicted.reason == "" && l.port != nil
}

// gateways reads the Gateways of our classes.
func (s *Source) collectGateways(st *state) {
	ours := s.ourClasses()
	for _, o := range s.objects(gateways) {
		g, ok := o.(*gatewayv1.Gateway)
		if !ok || ours[string(g.Spec.GatewayClassName)] == nil {
			continue
		}
		gs := &gatewayState{Gateway: g}
		for _, a := range g.Spec.Addresses {
			if a.Value != "" {
				gs.refused, gs.message = string(gatewayv1.GatewayReasonUnsupportedAddress), "Addresses cannot be chosen: a gateway has those of the nodes"
			}
		}
		for i := range g.Spec.Listeners {
			spec := &g.Spec.Listeners[i]
			l := &listener{Listener: spec, gateway: gs}
			if spec.Hostname != nil {
				l.hostname = strings.ToLower(string(*spec.Hostname))
			}
			l.check()
			gs.listeners = append(gs.listeners, l)
		}
		st.gateways = append(st.gateways, gs)
	}
	for _, g := range st.gateways {
		g.conflicts()
	}
	for _, g := range st.gateways {
		if g.refused != "" {
			continue
		}
		for _, l := range g.listeners {
			s.open(st, l)
		}
	}
}

// check finds what is wrong with a listener by itself.
func (l *listener) check() {
	var supported []string
	switch l.Protocol {
	case gatewayv1.HTTPProtocolType:
		supported = []string{"HTTPRoute", "GRPCRoute"}
	case gatewayv1.HTTPSProtocolType:
		supported = []string{"HTTPRoute", "GRPCRoute"}
		if l.TLS != nil && l.TLS.Mode != nil && *l.TLS.Mode != gatewayv1.TLSModeTerminate {
			l.notAccepted = problem{string(gatewayv1.ListenerReasonUnsupportedValue), "TLS that is passed through is not supported"}
		}
	default:
		l.notAccepted = problem{string(gatewayv1.ListenerReasonUnsupportedProtocol), fmt.Sprintf("Protocol %s is not supported: use HTTP or HTTPS", l.Protocol)}
	}
	wanted := l.AllowedRoutes
	if wanted == nil || len(wanted.Kinds) == 0 {
		for _, k := range supported {
			l.kinds = append(l.kinds, groupKind(k))
		}
		return
	}
	for _, k := range wanted.Kinds {
		if (k.Group == nil || *k.Group == gatewayv1.GroupName) && slices.Contains(supported, string(k.Kind)) {
			l.kinds = append(l.kinds, groupKind(string(k.Kind)))
		} else {
			l.unresolved = problem{string(gatewayv1.ListenerReasonInvalidRouteKinds), fmt.Sprintf("Routes of kind %s cannot be attached to a listener of protocol %s", k.Kind, l.Protocol)}
		}
	}
}

func groupKind(kind string) gatewayv1.RouteGroupKind {
	group := gatewayv1.Group(gatewayv1.GroupName)
	return gatewayv1.RouteGroupKind{Group: &group, Kind: gatewayv1.Kind(kind)}
}

func (l *listener) allowsKind(kind string) bool {
	return slices.ContainsFunc(l.kinds, func(k gatewayv1.RouteGroupKind) bool { return string(k.Kind) == kind })
}

// conflicts finds listeners of one Gateway that exclude each other.
func (g *gatewayState) conflicts() {
	for i, a := range g.listeners {
		for _, b := range g.listeners[i+1:] {
			if a.Port != b.Port {
				continue
			}
			var p problem
			switch {
			case a.Protocol != b.Protocol:
				p = problem{string(gatewayv1.ListenerReasonProtocolConflict), "Listeners of one port must have the same protocol"}
			case a.hostname == b.hostname:
				p = problem{string(gatewayv1.ListenerReasonHostnameConflict), "Listeners of one port must have different hostnames"}
			default:
				continue
			}
			a.conflicted, b.conflicted = p, p
		}
	}
}

// open asks for the port and the certificates of a listener.
func (s *Source) open(st *state, l *listener) {
	if l.notAccepted.reason != "" || l.conflicted.reason != "" {
		return
	}
	secure := l.Protocol == gatewayv1.HTTPSProtocolType
	var certificates []*gateway.Certificate
	if secure {
		var p problem
		if certificates, p = st.certificates(l); p.reason != "" {
			l.unresolved = p
		}
		if len(certificates) == 0 {
			return
		}
	}
	port, ok := st.build.Port(int(l.Port), secure)
	if !ok {
		l.conflicted = problem{string(gatewayv1.ListenerReasonProtocolConflict), fmt.Sprintf("Port %d is used with another protocol by another Gateway or by Ingresses", l.Port)}
		return
	}
	l.port = port
	// The host is there even without a route: a listener with a wider name must not
	// answer for it.
	h := port.Host(l.hostname)
	h.Certificates = append(h.Certificates, certificates...)
}

// certificates reads those of a listener.
func (st *state) certificates(l *listener) ([]*gateway.Certificate, problem) {
	if l.TLS == nil || len(l.TLS.CertificateRefs) == 0 {
		return nil, problem{string(gatewayv1.ListenerReasonInvalidCertificateRef), "A listener of protocol HTTPS needs a certificateRef"}
	}
	var out []*gateway.Certificate
	var p problem
	for _, ref := range l.TLS.CertificateRefs {
		if ref.Group != nil && *ref.Group != "" || ref.Kind != nil && *ref.Kind != "Secret" {
			p = problem{string(gatewayv1.ListenerReasonInvalidCertificateRef), fmt.Sprintf("Certificate %s is no Secret", ref.Name)}
			continue
		}
		namespace := l.gateway.Namespace
		if ref.Namespace != nil {
			namespace = string(*ref.Namespace)
		}
		if namespace != l.gateway.Namespace && !st.granted(from{gatewayv1.GroupName, "Gateway", l.gateway.Namespace}, to{"", "Secret", namespace, string(ref.Name)}) {
			p = problem{string(gatewayv1.ListenerReasonRefNotPermitted), fmt.Sprintf("Secret %s/%s may not be used: no ReferenceGrant in its namespace allows it", namespace, ref.Name)}
			continue
		}
		c, err := st.build.Certificate(namespace, string(ref.Name))
		if err != nil {
			p = problem{string(gatewayv1.ListenerReasonInvalidCertificateRef), err.Error()}
			continue
		}
		out = append(out, c)
	}
	return out, p
}

// isolated reports whether another listener of the port is more specific for a host:
// then it alone answers for it.
func (l *listener) isolated(st *state, host string) bool {
	for _, g := range st.gateways {
		for _, other := range g.listeners {
			if other != l && other.Port == l.Port && other.port != nil && other.hostname != l.hostname &&
				covers(other.hostname, host) && len(other.hostname) > len(l.hostname) {
				return true
			}
		}
	}
	return false
}
