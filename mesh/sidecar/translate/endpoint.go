package translate

import (
	"maps"
	"net"
	"strconv"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpoint "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"

	"github.com/periplus/periplus/l7"
	"github.com/periplus/periplus/mesh"
)

func endpoints(m *endpoint.ClusterLoadAssignment) []*l7.Endpoint {
	var out []*l7.Endpoint
	for _, group := range m.GetEndpoints() {
		locality := group.GetLocality().GetRegion() + "/" + group.GetLocality().GetZone() + "/" + group.GetLocality().GetSubZone()
		for _, e := range group.GetLbEndpoints() {
			address := e.GetEndpoint().GetAddress().GetSocketAddress()
			if address == nil {
				continue
			}
			l := &l7.Endpoint{
				Address:  net.JoinHostPort(address.GetAddress(), strconv.Itoa(int(address.GetPortValue()))),
				Hostname: e.GetEndpoint().GetHostname(), Weight: e.GetLoadBalancingWeight().GetValue(),
				Locality: locality, Priority: int(group.GetPriority()), Metadata: map[string]string{},
			}
			switch e.GetHealthStatus() {
			case core.HealthStatus_DRAINING:
				l.Health = l7.Draining
			case core.HealthStatus_UNHEALTHY, core.HealthStatus_TIMEOUT:
				l.Health = l7.Unhealthy
			}
			f := e.GetMetadata().GetFilterMetadata()
			maps.Copy(l.Metadata, texts(f[mesh.MetadataTransport]))
			if w := f[mesh.MetadataIstio].GetFields()[mesh.MetadataWorkload].GetStringValue(); w != "" {
				l.Metadata[mesh.MetadataWorkload] = w
			}
			out = append(out, l)
		}
	}
	return out
}
