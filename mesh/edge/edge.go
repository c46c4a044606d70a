package edge

import (
	"maps"
	"slices"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"

	"github.com/periplus/periplus/l7"
	"github.com/periplus/periplus/mesh"
)

// Account is the service account that the edge of the cluster is in the mesh.
const Account = "periplus-ingress"

// Identity is the edge's.
var Identity = mesh.Identity{TrustDomain: mesh.TrustDomain, Namespace: mesh.RootNamespace, ServiceAccount: Account}

// Credentials show who the edge is, and tell who its peers are.
type Credentials interface {
	l7.CertificateSource
	l7.RootSource
}

// A Peer is a pod as the edge sees it.
type Peer struct {
	ServiceAccount string // empty: default
	Sidecar        bool
}

// PeerOf reads a pod.
func PeerOf(p *corev1.Pod) Peer {
	return Peer{ServiceAccount: p.Spec.ServiceAccountName, Sidecar: p.Labels[mesh.LabelTLS] == mesh.TLSModeIstio}
}

// view is what an Edge knows once there is a mesh.
type view struct {
	credentials Credentials
	peers       func(namespace, pod string) (Peer, bool)
}

// An Edge lets the gateway speak mutual TLS with pods of the mesh (gateway.Mesh). Its
// zero value knows of no mesh and changes nothing.
type Edge struct {
	view atomic.Pointer[view]
	// asked is called by each Secure; nil: nobody wants to know.
	asked func()
}

// Join gives the edge its identity, and a way to find pods.
func (e *Edge) Join(c Credentials, peers func(namespace, pod string) (Peer, bool)) {
	e.view.Store(&view{c, peers})
}

// Secure sets the TLS of a cluster and marks the endpoints that it is for. Endpoints
// have the metadata "namespace" and "pod".
func (e *Edge) Secure(c *l7.Cluster, namespace, service string, port int32, endpoints []*l7.Endpoint) {
	if e.asked != nil {
		e.asked()
	}
	v := e.view.Load()
	if v == nil || c.TLS != nil || len(c.TransportMatches) > 0 {
		return
	}
	accounts := map[string]bool{}
	for _, endpoint := range endpoints {
		pod := endpoint.Metadata["namespace"]
		peer, known := v.peers(pod, endpoint.Metadata["pod"])
		if !known || !peer.Sidecar {
			continue
		}
		endpoint.Metadata[mesh.MetadataTLSMode] = mesh.TLSModeIstio
		account := peer.ServiceAccount
		if account == "" {
			account = "default"
		}
		accounts[mesh.Identity{TrustDomain: mesh.TrustDomain, Namespace: pod, ServiceAccount: account}.String()] = true
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
			Certificates: v.credentials, Roots: v.credentials, SubjectAltNames: slices.Sorted(maps.Keys(accounts)), ALPN: []string{alpn},
		},
	}}
}
