package gatewayapi

import (
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/periplus/periplus/gateway"
)

// Build implements gateway.Source.
func (s *Source) Build(b *gateway.Build) {
	st := &state{build: b}
	s.last = st
	for _, o := range s.objects(grants) {
		if g, ok := o.(*gatewayv1.ReferenceGrant); ok {
			st.grants = append(st.grants, g)
		}
	}
	s.collectGateways(st)
	if len(st.gateways) > 0 {
		s.collectRoutes(st)
	}
}
