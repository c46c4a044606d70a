package pilot

import (
	networking "istio.io/api/networking/v1alpha3"
	security "istio.io/api/security/v1beta1"

	"github.com/periplus/periplus/mesh"
	"github.com/periplus/periplus/mesh/config"
)

// trafficPolicy is what a destination rule says about a port and a subset: what the
// subset says counts before what the rule says, what is said for the port replaces both.
func trafficPolicy(d *config.DestinationRule, subset string, port int) *networking.TrafficPolicy {
	out := &networking.TrafficPolicy{}
	if d == nil {
		return out
	}
	layers := []*networking.TrafficPolicy{d.Spec.GetTrafficPolicy()}
	for _, s := range d.Spec.GetSubsets() {
		if subset != "" && s.GetName() == subset {
			layers = append(layers, s.GetTrafficPolicy())
		}
	}
	var forPort *networking.TrafficPolicy_PortTrafficPolicy
	for _, l := range layers {
		if l == nil {
			continue
		}
		if l.LoadBalancer != nil {
			out.LoadBalancer = l.LoadBalancer
		}
		if l.ConnectionPool != nil {
			out.ConnectionPool = l.ConnectionPool
		}
		if l.OutlierDetection != nil {
			out.OutlierDetection = l.OutlierDetection
		}
		if l.Tls != nil {
			out.Tls = l.Tls
		}
		if l.ProxyProtocol != nil {
			out.ProxyProtocol = l.ProxyProtocol
		}
		for _, p := range l.GetPortLevelSettings() {
			if int(p.GetPort().GetNumber()) == port {
				forPort = p
			}
		}
	}
	if forPort != nil {
		return &networking.TrafficPolicy{
			LoadBalancer: forPort.LoadBalancer, ConnectionPool: forPort.ConnectionPool,
			OutlierDetection: forPort.OutlierDetection, Tls: forPort.Tls, ProxyProtocol: out.ProxyProtocol,
		}
	}
	return out
}

// A mode is whether a port takes mutual TLS.
type mode = security.PeerAuthentication_MutualTLS_Mode

// Modes.
const (
	unset      = security.PeerAuthentication_MutualTLS_UNSET
	disable    = security.PeerAuthentication_MutualTLS_DISABLE
	permissive = security.PeerAuthentication_MutualTLS_PERMISSIVE
	strict     = security.PeerAuthentication_MutualTLS_STRICT
)

// modes are those of a workload, by the number of its pod's ports.
type modes struct {
	all   mode
	ports map[int]mode
}

func (m *modes) of(port int) mode {
	if v, ok := m.ports[port]; ok {
		return v
	}
	return m.all
}

// modesOf takes the mesh's, the namespace's and the workload's PeerAuthentication
// into account, the more specific one before the others and the oldest of each.
func (w *World) modesOf(namespace string, labels map[string]string) modes {
	var forMesh, forNamespace, forWorkload *config.PeerAuthentication
	keep := func(into **config.PeerAuthentication, p *config.PeerAuthentication) {
		if *into == nil {
			*into = p
		}
	}
	for _, p := range w.peers {
		selector := p.Spec.GetSelector().GetMatchLabels()
		switch {
		case p.Namespace == mesh.RootNamespace && len(selector) == 0:
			keep(&forMesh, p)
			if namespace == mesh.RootNamespace {
				keep(&forNamespace, p)
			}
		case p.Namespace != namespace:
		case len(selector) == 0:
			keep(&forNamespace, p)
		case subsetOf(selector, labels):
			keep(&forWorkload, p)
		}
	}
	out := modes{all: permissive}
	for _, p := range []*config.PeerAuthentication{forMesh, forNamespace, forWorkload} {
		if m := p.Mode(); m != unset {
			out.all = m
		}
	}
	if forWorkload == nil {
		return out
	}
	for n, m := range forWorkload.Spec.GetPortLevelMtls() {
		if out.ports == nil {
			out.ports = map[int]mode{}
		}
		if out.ports[int(n)] = m.GetMode(); m.GetMode() == unset {
			out.ports[int(n)] = out.all
		}
	}
	return out
}
