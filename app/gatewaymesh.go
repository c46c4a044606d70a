package app

import (
	"maps"
	"slices"
	"sync/atomic"

	corelisters "k8s.io/client-go/listers/core/v1"

	"github.com/periplus/periplus/gateway"
	"github.com/periplus/periplus/l7"
	"github.com/periplus/periplus/mesh"
	"github.com/periplus/periplus/mesh/ca"
)

// edgeAccount is the service account that the edge of the cluster is in the mesh.
const edgeAccount = "periplus-ingress"

// A meshEdge lets the gateway of a server speak mutual TLS with pods of the mesh,
// once there is one. Gateways of other nodes speak plain text with them.
type meshEdge struct {
	pods     corelisters.PodLister
	workload atomic.Pointer[ca.Workload]
}

var _ gateway.Mesh = (*meshEdge)(nil)

// join gives the edge its identity.
func (m *meshEdge) join(a *ca.Authority) {
	m.workload.Store(ca.NewWorkload(a, mesh.Identity{TrustDomain: mesh.TrustDomain, Namespace: mesh.RootNamespace, ServiceAccount: edgeAccount}))
}

// Secure implements gateway.Mesh.
func (m *meshEdge) Secure(c *l7.Cluster, namespace, service string, port int32, endpoints []*l7.Endpoint) {
	w := m.workload.Load()
	if w == nil || c.TLS != nil || len(c.TransportMatches) > 0 {
		return
	}
	accounts := map[string]bool{}
	for _, e := range endpoints {
		pod, err := m.pods.Pods(e.Metadata["namespace"]).Get(e.Metadata["pod"])
		if err != nil || pod.Labels[mesh.LabelTLS] != mesh.TLSModeIstio {
			continue
		}
		e.Metadata[mesh.MetadataTLSMode] = mesh.TLSModeIstio
		account := pod.Spec.ServiceAccountName
		if account == "" {
			account = "default"
		}
		accounts[mesh.Identity{TrustDomain: mesh.TrustDomain, Namespace: pod.Namespace, ServiceAccount: account}.String()] = true
	}
	if len(accounts) == 0 {
		return
	}
	alpn := mesh.ALPNHTTP1
	if c.Protocol == l7.ProtocolHTTP2 {
		alpn = mesh.ALPNHTTP2
	}
	c.TransportMatches = []l7.TransportMatch{{
		Metadata: map[string]string{mesh.MetadataTLSMode: mesh.TLSModeIstio},
		TLS: &l7.UpstreamTLS{
			ServerName:   mesh.ServerName(int(port), "", service+"."+namespace+".svc.cluster.local"),
			Certificates: w, Roots: w, SubjectAltNames: slices.Sorted(maps.Keys(accounts)), ALPN: []string{alpn},
		},
	}}
}
