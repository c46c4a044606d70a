package telemetry

import (
	"strings"

	"github.com/periplus/periplus/l7"
	"github.com/periplus/periplus/mesh"
)

// Metadata of l7 clusters and endpoints that an Observer reads.
const (
	ClusterHost      = "service.host"
	ClusterName      = "service.name"
	ClusterNamespace = "service.namespace"
	EndpointWorkload = mesh.MetadataWorkload
)

// An Observer counts what passes one side of a proxy.
type Observer struct {
	Metrics *Metrics
	// Self is this proxy's workload, Principal its identity with its scheme.
	Self      mesh.Workload
	Principal string
	// Inbound is set for what is sent to the application.
	Inbound bool
	// Early, if not nil, is told of the first few requests of each series. It must not
	// keep x.
	Early func(x *l7.Exchange, l *Labels, inbound bool)
	// Log gets a line for each request; nil: none.
	Log *AccessLog
}

var (
	_ l7.Observer           = (*Observer)(nil)
	_ l7.ConnectionObserver = (*Observer)(nil)
)

// unknown is a peer that is not of the mesh.
var unknown = mesh.Workload{Name: "unknown", Namespace: "unknown", App: "unknown", Version: "unknown", CanonicalName: "unknown", CanonicalRevision: "latest", Cluster: "unknown"}

// Request implements l7.Observer.
func (o *Observer) Request(x *l7.Exchange) {
	l := Labels{Protocol: "http", Code: x.Response.Status, Flags: x.Flags.String()}
	if x.Request.GRPC() {
		l.Protocol = "grpc"
		if l.GRPCStatus = x.Response.Trailer.Get("grpc-status"); l.GRPCStatus == "" {
			l.GRPCStatus = x.Response.Header.Get("grpc-status")
		}
	}
	peer, _ := x.Value(peerKey{}).(*mesh.Workload)
	o.fill(&l, x.Connection, x.Cluster, x.ClusterName, x.Endpoint, x.UpstreamPeer, peer)
	if l.Service == "" {
		l.Service = x.Request.Host()
		l.ServiceName = x.Request.Host()
		if x.ClusterName == mesh.PassthroughCluster {
			l.ServiceName = mesh.PassthroughCluster
		}
	}
	if o.Metrics.Request(&l, x.Duration, x.BytesReceived, x.BytesSent) && o.Early != nil {
		o.Early(x, &l, o.Inbound)
	}
	if o.Log != nil {
		o.Log.request(o, x)
	}
}

// fill sets what requests and connections have in common.
func (o *Observer) fill(l *Labels, c *l7.Connection, cluster *l7.Cluster, name string, e *l7.Endpoint, upstream *l7.Peer, peer *mesh.Workload) {
	if cluster != nil {
		l.Service, l.ServiceName, l.ServiceNamespace = cluster.Metadata[ClusterHost], cluster.Metadata[ClusterName], cluster.Metadata[ClusterNamespace]
	}
	if o.Inbound {
		l.Reporter = ReporterDestination
		l.Destination, l.Source = o.Self, unknown
		if peer != nil {
			l.Source = *peer
		}
		l.Security = "none"
		if c.Peer != nil {
			l.SourcePrincipal, l.DestinationPrincipal, l.Security = c.Peer.URI, o.Principal, "mutual_tls"
			if peer == nil {
				if id, err := mesh.ParseIdentity(c.Peer.URI); err == nil {
					l.Source.Namespace = id.Namespace
				}
			}
		}
		return
	}
	l.Reporter = ReporterSource
	l.Source, l.Destination = o.Self, unknown
	l.Security = "unknown" // the server's side knows better
	if e != nil {
		if w := e.Metadata[EndpointWorkload]; w != "" {
			l.Destination = mesh.ParseShort(w)
		}
	}
	if upstream != nil {
		l.SourcePrincipal, l.DestinationPrincipal = o.Principal, upstream.URI
	}
	if l.Service == "" && (name == mesh.PassthroughCluster || name == mesh.BlackHoleCluster) {
		l.ServiceName = name
	}
}

// connection are the labels of a TCP connection.
func (o *Observer) connection(c *l7.Connection) *Labels {
	l := &Labels{Protocol: "tcp", Flags: c.Flags.String()}
	name := strings.TrimPrefix(c.ClusterName, TCPPrefix)
	o.fill(l, c, c.Cluster, name, c.Endpoint, c.UpstreamPeer, nil)
	if l.Service == "" {
		l.Service = c.Destination.String()
	}
	return l
}

// TCPPrefix begins the names of clusters that are another's twin for plain TCP.
const TCPPrefix = "tcp|"

// Opened implements l7.ConnectionObserver. The series is known when the connection ends.
func (o *Observer) Opened(*l7.Connection) {}

// Closed implements l7.ConnectionObserver.
func (o *Observer) Closed(c *l7.Connection) {
	l := o.connection(c)
	o.Metrics.Opened(l)
	o.Metrics.Closed(l, c.BytesReceived, c.BytesSent)
	if o.Log != nil {
		o.Log.connection(o, c)
	}
}
