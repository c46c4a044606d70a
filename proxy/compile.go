package proxy

import (
	"net/netip"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
)

// Compile returns the ports of a Service in one address family, for a node.
// A Service without a cluster IP in that family, an ExternalName one and a
// node-local one have none. It does what upstream's kube-proxy does (KEP-1669
// for terminating endpoints, KEP-2086 for the internal traffic policy).
func Compile(svc *v1.Service, slicesOf []*discoveryv1.EndpointSlice, node string, ipv6 bool) []*Port {
	if svc == nil || svc.Spec.Type == v1.ServiceTypeExternalName || svc.Annotations[NodeLocalAnnotation] == "true" {
		return nil
	}
	clusterIP, ok := clusterIPOf(svc, ipv6)
	if !ok {
		return nil
	}
	base := Port{
		ClusterIP:     clusterIP,
		External:      addresses(svc.Spec.ExternalIPs, ipv6),
		LoadBalancer:  ingressOf(svc, ipv6),
		Affinity:      affinityOf(svc),
		InternalLocal: svc.Spec.InternalTrafficPolicy != nil && *svc.Spec.InternalTrafficPolicy == v1.ServiceInternalTrafficPolicyLocal,
		ExternalLocal: svc.Spec.ExternalTrafficPolicy == v1.ServiceExternalTrafficPolicyLocal,
	}
	if svc.Spec.Type == v1.ServiceTypeLoadBalancer {
		base.SourceRanges = prefixes(svc.Spec.LoadBalancerSourceRanges, ipv6)
		if base.ExternalLocal {
			base.HealthCheckNodePort = uint16(svc.Spec.HealthCheckNodePort)
		}
	}
	out := make([]*Port, 0, len(svc.Spec.Ports))
	for i := range svc.Spec.Ports {
		sp := &svc.Spec.Ports[i]
		p := base
		p.Name = PortName{Namespace: svc.Namespace, Name: svc.Name, Port: sp.Name, Protocol: protocol(sp.Protocol)}
		p.Port, p.NodePort = uint16(sp.Port), uint16(sp.NodePort)
		p.setEndpoints(slicesOf, node, ipv6)
		out = append(out, &p)
	}
	return out
}

// setEndpoints chooses the endpoints of the port.
func (p *Port) setEndpoints(list []*discoveryv1.EndpointSlice, node string, ipv6 bool) {
	family := discoveryv1.AddressTypeIPv4
	if ipv6 {
		family = discoveryv1.AddressTypeIPv6
	}
	var ready, draining, localReady, localDraining []netip.AddrPort
	for _, s := range list {
		if s.AddressType != family {
			continue
		}
		number, ok := p.portIn(s)
		if !ok {
			continue
		}
		ready = slices.Grow(ready, len(s.Endpoints))
		for i := range s.Endpoints {
			e := &s.Endpoints[i]
			if len(e.Addresses) == 0 {
				continue
			}
			addr, err := netip.ParseAddr(e.Addresses[0])
			if err != nil || addr.Is6() != ipv6 {
				continue
			}
			ep := netip.AddrPortFrom(addr, number)
			local := e.NodeName != nil && *e.NodeName == node
			switch {
			case e.Conditions.Ready == nil || *e.Conditions.Ready:
				ready = append(ready, ep)
				if local {
					localReady = append(localReady, ep)
				}
			case isTrue(e.Conditions.Serving) && isTrue(e.Conditions.Terminating):
				draining = append(draining, ep)
				if local {
					localDraining = append(localDraining, ep)
				}
			}
		}
	}
	p.Cluster = firstOf(ready, draining)
	local := firstOf(localReady, localDraining)
	if p.InternalLocal || p.IsExternal() && p.ExternalLocal {
		p.Local = local
	}
	for _, ep := range local {
		p.OnNode = append(p.OnNode, ep.Addr())
	}
	slices.SortFunc(p.OnNode, netip.Addr.Compare)
	p.OnNode = slices.Compact(p.OnNode)
}

// portIn returns the endpoints' port for p in a slice.
func (p *Port) portIn(s *discoveryv1.EndpointSlice) (uint16, bool) {
	for i := range s.Ports {
		sp := &s.Ports[i]
		name, proto := "", v1.ProtocolTCP
		if sp.Name != nil {
			name = *sp.Name
		}
		if sp.Protocol != nil {
			proto = *sp.Protocol
		}
		if name == p.Name.Port && proto == p.Name.Protocol && sp.Port != nil && *sp.Port > 0 && *sp.Port <= 65535 {
			return uint16(*sp.Port), true
		}
	}
	return 0, false
}

// firstOf returns the first list that is not empty, sorted and without doubles:
// an endpoint may be in two slices while it moves from one to the other.
func firstOf(lists ...[]netip.AddrPort) []netip.AddrPort {
	for _, l := range lists {
		if len(l) > 0 {
			slices.SortFunc(l, netip.AddrPort.Compare)
			return slices.Clip(slices.Compact(l))
		}
	}
	return nil
}

func clusterIPOf(svc *v1.Service, ipv6 bool) (netip.Addr, bool) {
	ips := svc.Spec.ClusterIPs
	if len(ips) == 0 {
		ips = []string{svc.Spec.ClusterIP}
	}
	for _, s := range ips {
		if a, err := netip.ParseAddr(s); err == nil && a.Is6() == ipv6 {
			return a, true
		}
	}
	return netip.Addr{}, false
}

func affinityOf(svc *v1.Service) time.Duration {
	if svc.Spec.SessionAffinity != v1.ServiceAffinityClientIP {
		return 0
	}
	seconds := v1.DefaultClientIPServiceAffinitySeconds
	if c := svc.Spec.SessionAffinityConfig; c != nil && c.ClientIP != nil && c.ClientIP.TimeoutSeconds != nil {
		seconds = *c.ClientIP.TimeoutSeconds
	}
	return time.Duration(seconds) * time.Second
}

// ingressOf returns the load balancer's addresses whose traffic arrives
// unchanged (KEP-1860).
func ingressOf(svc *v1.Service, ipv6 bool) []netip.Addr {
	if svc.Spec.Type != v1.ServiceTypeLoadBalancer {
		return nil
	}
	var list []string
	for _, in := range svc.Status.LoadBalancer.Ingress {
		if in.IP != "" && (in.IPMode == nil || *in.IPMode == v1.LoadBalancerIPModeVIP) {
			list = append(list, in.IP)
		}
	}
	return addresses(list, ipv6)
}

func addresses(list []string, ipv6 bool) []netip.Addr {
	var out []netip.Addr
	for _, s := range list {
		if a, err := netip.ParseAddr(s); err == nil && a.Is6() == ipv6 {
			out = append(out, a)
		}
	}
	slices.SortFunc(out, netip.Addr.Compare)
	return slices.Compact(out)
}

func prefixes(list []string, ipv6 bool) []netip.Prefix {
	var out []netip.Prefix
	for _, s := range list {
		if p, err := netip.ParsePrefix(s); err == nil && p.Addr().Is6() == ipv6 {
			out = append(out, p.Masked())
		}
	}
	slices.SortFunc(out, netip.Prefix.Compare)
	return slices.Compact(out)
}

func protocol(p v1.Protocol) v1.Protocol {
	if p == "" {
		return v1.ProtocolTCP
	}
	return p
}

func isTrue(b *bool) bool { return b != nil && *b }
