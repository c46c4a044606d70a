package proxy

import (
	"fmt"
	"net/netip"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
)

// NodeLocalAnnotation marks Services that a process on every node answers at
// the cluster IP itself.
const NodeLocalAnnotation = "periplus.io/node-local"

// A PortName identifies one port of a Service.
type PortName struct {
	Namespace, Name string
	Port            string // the port's name, often empty
	Protocol        v1.Protocol
}

func (n PortName) String() string {
	if n.Port == "" {
		return fmt.Sprintf("%s/%s/%s", n.Namespace, n.Name, n.Protocol)
	}
	return fmt.Sprintf("%s/%s:%s/%s", n.Namespace, n.Name, n.Port, n.Protocol)
}

// A Port is one port of a Service in one address family: where clients send to,
// and who answers. It is immutable.
type Port struct {
	Name         PortName
	ClusterIP    netip.Addr
	Port         uint16
	NodePort     uint16       // 0: none
	External     []netip.Addr // externalIPs, sorted
	LoadBalancer []netip.Addr // ingress addresses of a load balancer, sorted
	// SourceRanges limit who may use the load balancer's addresses; none: anybody.
	SourceRanges []netip.Prefix
	Affinity     time.Duration // ClientIP affinity; 0: none
	// InternalLocal and ExternalLocal are the traffic policies "Local".
	InternalLocal, ExternalLocal bool
	// HealthCheckNodePort answers whether the node has local endpoints; 0: none.
	HealthCheckNodePort uint16

	// Cluster are the usable endpoints anywhere, Local those on this node: the
	// ready ones, or, when none is ready, those that still serve while they
	// terminate. Sorted.
	Cluster []netip.AddrPort
	Local   []netip.AddrPort
	// OnNode are the addresses of endpoints on this node that Cluster or Local
	// holds. Sorted.
	OnNode []netip.Addr
}

// Equal says whether both mean the same rules.
func (p *Port) Equal(o *Port) bool {
	if p == o {
		return true
	}
	if p == nil || o == nil {
		return false
	}
	return p.Name == o.Name && p.ClusterIP == o.ClusterIP && p.Port == o.Port && p.NodePort == o.NodePort &&
		p.Affinity == o.Affinity && p.InternalLocal == o.InternalLocal && p.ExternalLocal == o.ExternalLocal &&
		p.HealthCheckNodePort == o.HealthCheckNodePort &&
		slices.Equal(p.External, o.External) && slices.Equal(p.LoadBalancer, o.LoadBalancer) &&
		slices.Equal(p.SourceRanges, o.SourceRanges) &&
		slices.Equal(p.Cluster, o.Cluster) && slices.Equal(p.Local, o.Local) && slices.Equal(p.OnNode, o.OnNode)
}

// IsExternal says whether the port can be reached from outside of the cluster.
func (p *Port) IsExternal() bool {
	return p.NodePort != 0 || len(p.External) > 0 || len(p.LoadBalancer) > 0
}

// An Update is a port's new state; Port is nil when it has gone.
type Update struct {
	Name PortName
	Port *Port
}
