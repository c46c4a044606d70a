package pilot

import (
	"cmp"
	"slices"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/periplus/periplus/mesh"
)

// mutual reports whether an endpoint is spoken to with mutual TLS: its pod has a
// sidecar, which takes it.
func (w *World) mutual(namespace string, e *endpoint) bool {
	if !e.tls {
		return false
	}
	m := w.modesOf(namespace, e.labels)
	return m.of(e.port) != disable
}

// assignment is the endpoints of a cluster as a resource; one for a cluster that
// does not exist is empty, so that nobody waits for it.
func (w *World) assignment(name string, rules func(host, namespace string) map[string]string) *resource {
	_, number, subset, host, err := mesh.ParseClusterName(name)
	out := &endpointv3.ClusterLoadAssignment{ClusterName: name}
	s := w.byHost[host]
	if err != nil || s == nil {
		return newResource(name, out)
	}
	var selector map[string]string
	if subset != "" {
		if selector = rules(host, s.namespace); selector == nil {
			return newResource(name, out)
		}
	}
	groups := map[[2]string]*endpointv3.LocalityLbEndpoints{}
	for _, e := range w.endpoints[portKey{host, number}] {
		if e.unready || !subsetOf(selector, e.labels) {
			continue
		}
		key := [2]string{e.region, e.zone}
		g := groups[key]
		if g == nil {
			g = &endpointv3.LocalityLbEndpoints{Locality: &core.Locality{Region: e.region, Zone: e.zone}, LoadBalancingWeight: u32(0)}
			groups[key] = g
		}
		g.LoadBalancingWeight.Value++
		g.LbEndpoints = append(g.LbEndpoints, w.lbEndpoint(s, e))
	}
	for _, g := range groups {
		slices.SortFunc(g.LbEndpoints, func(a, b *endpointv3.LbEndpoint) int {
			return cmp.Compare(a.GetEndpoint().GetAddress().GetSocketAddress().GetAddress(), b.GetEndpoint().GetAddress().GetSocketAddress().GetAddress())
		})
		out.Endpoints = append(out.Endpoints, g)
	}
	slices.SortFunc(out.Endpoints, func(a, b *endpointv3.LocalityLbEndpoints) int {
		return cmp.Compare(a.GetLocality().GetRegion()+"/"+a.GetLocality().GetZone(), b.GetLocality().GetRegion()+"/"+b.GetLocality().GetZone())
	})
	return newResource(name, out)
}

func (w *World) lbEndpoint(s *service, e *endpoint) *endpointv3.LbEndpoint {
	m := map[string]*structpb.Struct{}
	if e.workload != "" {
		m[mesh.MetadataIstio] = fields(map[string]*structpb.Value{mesh.MetadataWorkload: text(e.workload)})
	}
	if w.mutual(s.namespace, e) {
		m[mesh.MetadataTransport] = fields(map[string]*structpb.Value{mesh.MetadataTLSMode: text(mesh.TLSModeIstio)})
	}
	out := &endpointv3.LbEndpoint{
		HostIdentifier:      &endpointv3.LbEndpoint_Endpoint{Endpoint: &endpointv3.Endpoint{Address: socket(e.address, e.port)}},
		HealthStatus:        core.HealthStatus_HEALTHY,
		LoadBalancingWeight: u32(1),
	}
	if e.draining {
		out.HealthStatus = core.HealthStatus_DRAINING
	}
	if len(m) > 0 {
		out.Metadata = &core.Metadata{FilterMetadata: m}
	}
	return out
}

// assignmentFor is the resource for a proxy of a namespace, made once for all of it.
func (w *World) assignmentFor(name, namespace string) *resource {
	// Only subsets depend on who asks: the rule may be the client's own.
	_, _, subset, _, err := mesh.ParseClusterName(name)
	key := name
	if err == nil && subset != "" {
		key = name + "\x00" + namespace
	}
	if made, ok := w.assignments.Load(key); ok {
		return made.(*resource)
	}
	made := w.assignment(name, func(host, serviceNamespace string) map[string]string {
		rule := w.rule(host, serviceNamespace, namespace)
		if rule == nil {
			return nil
		}
		for _, s := range rule.Spec.GetSubsets() {
			if s.GetName() == subset {
				if s.GetLabels() == nil {
					return map[string]string{}
				}
				return s.GetLabels()
			}
		}
		return nil
	})
	w.assignments.Store(key, made)
	return made
}
